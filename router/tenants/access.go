package tenants

import (
	"context"
	"fmt"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/router"
	"facet/router/cluster"
	"facet/router/secrets"
)

// AccessKey returns the key pair with the id accessKey. The error is NotFound for
// an unknown id. Before that, this node catches up with meta's leader.
func (r *TenantRequests) AccessKey(ctx context.Context, accessKey string) (router.AccessKey, error) {
	rec, err := cluster.ConfirmedLookup(ctx, r.cluster, func() (metafsm.AccessKey, bool) { return r.cluster.Groups.Meta().AccessKey(accessKey) })
	if err != nil {
		r.cluster.Master.Wrap([]byte(accessKey), []byte(secrets.PurposeSecret)) // in the place of Unwrap, so that the time does not reveal the key
		return router.AccessKey{}, err
	}
	secret, err := r.cluster.Master.Unwrap(rec.SealedSecret, []byte(secrets.PurposeSecret+accessKey))
	if err != nil {
		return router.AccessKey{}, fmt.Errorf("unwrap an access key's secret: %w", err)
	}
	return router.AccessKey{
		ID: accessKey, Secret: string(secret), Tenant: rec.Tenant, KeyTerms: termsOf(&rec),
		Disabled: r.cluster.Groups.Meta().TenantState(rec.Tenant) != metafsm.TenantActive,
	}, nil
}

// Access returns the application with the API key apiKey, and its gallery. The
// error is Forbidden for an unknown key and for another tenant's key.
func (r *TenantRequests) Access(ctx context.Context, tenant id.Tenant, apiKey string) (router.Access, error) {
	macs := r.cluster.Master.MACs(secrets.PurposeAPIKey, []byte(apiKey)) // two while the cluster's key is being replaced
	app, err := cluster.ConfirmedLookup(ctx, r.cluster, func() (app metafsm.Application, ok bool) {
		for i := 0; i < len(macs) && !ok; i++ {
			app, ok = r.cluster.Groups.Meta().ApplicationByMAC(macs[i])
		}
		return app, ok
	})
	if router.KindOf(err) == router.NotFound || err == nil && app.Tenant != tenant {
		return router.Access{}, router.Errorf(router.Forbidden, "", "Forbidden")
	}
	if err != nil {
		return router.Access{}, err
	}
	return router.Access{Tenant: tenant, Application: app.ID, Gallery: app.Gallery, SearchBounds: cluster.BoundsOf(app)}, nil
}
