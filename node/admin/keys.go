package admin

import (
	"context"
	"maps"
	"slices"

	"facet/node/wire"
	"facet/raftfsm/metafsm"
	"facet/router"
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
	out := wire.Tenant{Tenant: t.ID, Name: t.Name, State: tenantStates[t.State]}
	for _, q := range t.Quotas {
		out.Quotas = append(out.Quotas, wire.Quota{Name: q.Quota.String(), Used: q.Used, Most: q.Most, Own: q.Own, Incomplete: q.Incomplete})
	}
	return out
}

// setTenant sets quotas of a tenant, and returns all of them. It does not ask the shards for
// their use.
func (p *Port) setTenant(ctx context.Context, body wire.SetTenant) (none wire.Tenant, err error) {
	tenant, err := p.cfg.Router.TenantNamed(ctx, body.Name)
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
	tenant, err := p.cfg.Router.TenantNamed(ctx, o.Name)
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
	tenant, err := p.cfg.Router.TenantNamed(ctx, name)
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
		if k.Revoked {
			state = wire.KeyRevoked
		}
		list = append(list, wire.Key{AccessKey: k.ID, Role: k.Role.String(), State: state, Created: k.Created})
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
	tenant, err := p.cfg.Router.TenantNamed(ctx, body.Tenant)
	if err != nil {
		return pair, err
	}
	var key router.AccessKey
	if body.Rotate {
		key, pair.Old, err = p.cfg.Router.RotateAccessKey(ctx, tenant, role)
	} else {
		key, err = p.cfg.Router.CreateAccessKey(ctx, tenant, role)
	}
	if err != nil {
		return pair, err
	}
	p.cfg.Log.InfoContext(ctx, "access key made", "key", key.ID)
	pair.Tenant, pair.Role, pair.AccessKey, pair.SecretKey = body.Tenant, key.Role.String(), key.ID, key.Secret
	return pair, nil
}

// revokeKey revokes an access key of a tenant.
func (p *Port) revokeKey(ctx context.Context, name, key string) (map[string]string, error) {
	tenant, err := p.cfg.Router.TenantNamed(ctx, name)
	if err == nil {
		err = p.cfg.Router.RevokeAccessKey(ctx, tenant, key)
	}
	if err != nil {
		return nil, err
	}
	p.cfg.Log.InfoContext(ctx, "access key revoked", "key", key)
	return map[string]string{"status": "OK"}, nil
}
