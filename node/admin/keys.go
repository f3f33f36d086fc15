package admin

import (
	"context"
	"net/http"

	"facet/node/wire"
	"facet/router"
)

// serveKeys lists the access keys of the tenant that the query names.
func (p *Port) serveKeys(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), adminTimeout)
	defer cancel()
	var records []router.KeyRecord
	tenant, err := p.cfg.Router.TenantNamed(ctx, r.URL.Query().Get("tenant"))
	if err == nil {
		records, err = p.cfg.Router.AccessKeys(ctx, tenant)
	}
	if err != nil {
		p.explain(w, "list access keys", err)
		return
	}
	list := make([]wire.Key, 0, len(records))
	for _, k := range records {
		state := wire.KeyLive
		if k.Revoked {
			state = wire.KeyRevoked
		}
		list = append(list, wire.Key{AccessKey: k.ID, Role: k.Role.String(), State: state, Created: k.Created})
	}
	answer(w, http.StatusOK, list)
}

// serveNewKey makes an access key, the first of its role or a successor.
func (p *Port) serveNewKey(w http.ResponseWriter, r *http.Request) {
	var body wire.NewKey
	if !readBody(w, r, &body) {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), adminTimeout)
	defer cancel()
	key, old, err := p.newKey(ctx, body)
	if err != nil {
		p.explain(w, "create access key", err)
		return
	}
	p.cfg.Log.Info("access key made", "key", key.ID)
	answer(w, http.StatusCreated, wire.KeyPair{
		Tenant: body.Tenant, Role: key.Role.String(), AccessKey: key.ID, SecretKey: key.Secret, Old: old,
	})
}

func (p *Port) newKey(ctx context.Context, body wire.NewKey) (key router.AccessKey, old string, err error) {
	role, err := router.ParseRole(body.Role)
	if err != nil {
		return key, "", err
	}
	tenant, err := p.cfg.Router.TenantNamed(ctx, body.Tenant)
	if err != nil {
		return key, "", err
	}
	if body.Rotate {
		return p.cfg.Router.RotateAccessKey(ctx, tenant, role)
	}
	key, err = p.cfg.Router.CreateAccessKey(ctx, tenant, role)
	return key, "", err
}

// serveRevokeKey revokes an access key of the tenant that the query names.
func (p *Port) serveRevokeKey(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), adminTimeout)
	defer cancel()
	key := r.PathValue("key")
	tenant, err := p.cfg.Router.TenantNamed(ctx, r.URL.Query().Get("tenant"))
	if err == nil {
		err = p.cfg.Router.RevokeAccessKey(ctx, tenant, key)
	}
	if err != nil {
		p.explain(w, "revoke access key", err)
		return
	}
	p.cfg.Log.Info("access key revoked", "key", key)
	answer(w, http.StatusOK, map[string]string{"status": "OK"})
}
