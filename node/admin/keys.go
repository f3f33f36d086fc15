package admin

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"facet/internal/id"
	"facet/node/wire"
	"facet/raftfsm/metafsm"
	"facet/router"
	"facet/router/routing"
)

// newTenant creates a tenant with its first access key.
func (p *Port) newTenant(ctx context.Context, body wire.NewTenant) (wire.TenantKeys, error) {
	key, err := p.cfg.Router.CreateTenant(ctx, body.Name)
	return wire.TenantKeys{Tenant: key.Tenant, Name: body.Name, AccessKey: key.ID, SecretKey: key.Secret}, err
}

// tenants lists all tenants with their quotas.
func (p *Port) tenants(ctx context.Context) ([]wire.Tenant, error) {
	all, err := p.cfg.Router.Tenants(ctx)
	list := make([]wire.Tenant, 0, len(all))
	for _, t := range all {
		list = append(list, wireTenant(t))
	}
	return list, err
}

// tenantStates has the words for the states of tenants.
var tenantStates = map[metafsm.TenantState]string{
	metafsm.TenantActive: wire.TenantActive, metafsm.TenantDisabled: wire.TenantDisabled, metafsm.TenantDeleting: wire.TenantDeleting,
}

func wireTenant(t router.TenantUse) wire.Tenant {
	out := wire.Tenant{Tenant: t.ID, Name: t.Name, State: tenantStates[t.State], Audit: wire.Audit{Mode: t.Audit.Mode.String(), Days: t.Audit.Retention()}}
	for _, q := range t.Quotas {
		out.Quotas = append(out.Quotas, wire.Quota{Name: q.Quota.String(), Used: q.Used, Most: q.Most, Own: q.Own, Incomplete: q.Incomplete, Unlimited: q.Most >= metafsm.QuotaMax})
	}
	return out
}

// changes returns the names of what an order about a tenant sets, and the audit with its days if the order has them.
func changes(o wire.SetTenant) string {
	names := slices.Sorted(maps.Keys(o.Quotas))
	if o.Audit != nil {
		names = append(names, "audit "+o.Audit.Mode)
		if o.Audit.Days > 0 {
			names = append(names, fmt.Sprintf("%d days", o.Audit.Days))
		}
	}
	return strings.Join(names, ", ")
}

// setTenant sets quotas of a tenant, and returns all of them. It does not ask the shards for
// their use.
func (p *Port) setTenant(ctx context.Context, body wire.SetTenant) (none wire.Tenant, err error) {
	tenant, _, err := p.ordered(ctx, body.Name, changes(body))
	if err != nil {
		return none, err
	}
	var values []metafsm.QuotaValue
	for _, name := range slices.Sorted(maps.Keys(body.Quotas)) {
		q, ok := metafsm.QuotaNamed(name)
		if !ok {
			return none, router.Errorf(router.InvalidRequest, "", "there is no quota %q; facet tenant show lists them", name)
		}
		values = append(values, metafsm.QuotaValue{Quota: q, Most: body.Quotas[name]})
	}
	if a := body.Audit; a != nil {
		mode, ok := metafsm.AuditModeNamed(a.Mode)
		if !ok {
			return none, router.Errorf(router.InvalidRequest, "", "an audit is best-effort, strict or off, not %q", a.Mode)
		}
		if err := p.cfg.Router.SetAudit(ctx, tenant, mode, a.Days); err != nil {
			return none, err
		}
	}
	t, err := p.cfg.Router.SetQuotas(ctx, tenant, values)
	if err != nil {
		return none, err
	}
	p.cfg.Log.InfoContext(ctx, "quotas set", "count", len(values))
	return wireTenant(t), nil
}

// setTenantState disables a tenant or enables it again.
func (p *Port) setTenantState(ctx context.Context, o wire.SetTenantState) error {
	state := metafsm.TenantActive
	switch o.State {
	case wire.TenantActive:
	case wire.TenantDisabled:
		state = metafsm.TenantDisabled
	default:
		return router.Errorf(router.InvalidRequest, "", "a tenant is active or disabled, not %q", o.State)
	}
	tenant, _, err := p.ordered(ctx, o.Name, o.State)
	if err == nil {
		err = p.cfg.Router.SetTenantState(ctx, tenant, state)
	}
	if err == nil {
		p.cfg.Log.InfoContext(ctx, "state of a tenant set", "tenant", tenant, "state", o.State)
	}
	return err
}

// deleteTenant deletes a tenant, or continues to.
func (p *Port) deleteTenant(ctx context.Context, name string) (d wire.TenantDeletion, err error) {
	tenant, _, err := p.ordered(ctx, name, "")
	if err != nil {
		return d, err
	}
	if d.Left, err = p.cfg.Router.DeleteTenant(ctx, tenant); err == nil {
		p.cfg.Log.InfoContext(ctx, "tenant deleted", "tenant", tenant, "left", d.Left)
	}
	return d, err
}

// keys lists the access keys of a tenant.
func (p *Port) keys(ctx context.Context, name string) ([]wire.Key, error) {
	tenant, err := p.cfg.Router.TenantNamed(ctx, name)
	if err != nil {
		return nil, err
	}
	records, err := p.cfg.Router.AccessKeys(ctx, tenant)
	list := make([]wire.Key, 0, len(records))
	for _, k := range records {
		state := wire.KeyLive
		switch {
		case k.Revoked:
			state = wire.KeyRevoked
		case !k.Ends.IsZero() && !time.Now().Before(k.Ends):
			state = wire.KeyEnded
		}
		list = append(list, wire.Key{
			AccessKey: k.ID, Role: k.Role.String(), State: state, Created: k.Created, KeyTerms: wireTerms(p.cfg.Router, &k.KeyTerms), Used: k.Used,
		})
	}
	return list, err
}

// newKey creates an access key: the first key of its role, or a second key to replace the
// present one.
func (p *Port) newKey(ctx context.Context, body wire.NewKey) (pair wire.KeyPair, err error) {
	role, err := router.ParseRole(body.Role)
	if err != nil {
		return pair, err
	}
	tenant, order, err := p.ordered(ctx, body.Tenant, termsText(body.Role, &body.KeyTerms))
	if err != nil {
		return pair, err
	}
	terms, err := routerTerms(p.cfg.Router, tenant, role, &body.KeyTerms)
	if err != nil {
		return pair, err
	}
	var key router.AccessKey
	if body.Rotate {
		key, pair.Old, err = p.cfg.Router.RotateAccessKey(ctx, tenant, terms)
	} else {
		key, err = p.cfg.Router.CreateAccessKey(ctx, tenant, terms)
	}
	if err != nil {
		return pair, err
	}
	p.cfg.Log.InfoContext(ctx, "access key made", "key", key.ID)
	pair.Tenant, pair.Role, pair.AccessKey, pair.SecretKey = body.Tenant, key.Role.String(), key.ID, key.Secret
	pair.KeyTerms = wireTerms(p.cfg.Router, &key.KeyTerms)
	order.made = key.ID + " " + termsText(pair.Role, &pair.KeyTerms)
	return pair, nil
}

// routerTerms returns the terms of an order for an access key of a tenant.
func routerTerms(r *routing.Router, tenant id.Tenant, role router.Role, t *wire.KeyTerms) (terms router.KeyTerms, err error) {
	terms = router.KeyTerms{Role: role, Holder: t.Holder, Ends: t.End()}
	if t.Ends != nil && t.Ends.IsZero() { // which the router takes for never
		return terms, router.Errorf(router.InvalidRequest, "", "an access key can't end in the year 1: leave the end out, or give a time to come")
	}
	for _, name := range t.Galleries {
		g, err := r.GalleryNamed(tenant, name)
		if err != nil {
			return terms, err
		}
		terms.Galleries = append(terms.Galleries, g)
	}
	for _, text := range t.Networks {
		n, err := netip.ParsePrefix(text)
		if address, wrong := netip.ParseAddr(text); wrong == nil {
			n, err = netip.PrefixFrom(address, address.BitLen()), nil
		}
		if err != nil {
			return terms, router.Errorf(router.InvalidRequest, "", "%q is no network such as 10.0.0.0/8 or 10.1.2.3", text)
		}
		terms.Networks = append(terms.Networks, n)
	}
	return terms, nil
}

// wireTerms returns terms for people: a gallery by its name, or by its id when it is deleted.
func wireTerms(r *routing.Router, t *router.KeyTerms) (terms wire.KeyTerms) {
	terms = wire.KeyTerms{Holder: t.Holder}
	if !t.Ends.IsZero() {
		terms.Ends = &t.Ends
	}
	for _, g := range t.Galleries {
		terms.Galleries = append(terms.Galleries, r.GalleryName(g))
	}
	for _, n := range t.Networks {
		terms.Networks = append(terms.Networks, n.String())
	}
	return terms
}

// revokeKey revokes an access key of a tenant.
func (p *Port) revokeKey(ctx context.Context, name, key string) (map[string]string, error) {
	tenant, _, err := p.ordered(ctx, name, key)
	if err == nil {
		err = p.cfg.Router.RevokeAccessKey(ctx, tenant, key)
	}
	if err != nil {
		return nil, err
	}
	p.cfg.Log.InfoContext(ctx, "access key revoked", "key", key)
	return map[string]string{"status": "OK"}, nil
}
