package admin

import (
	"context"

	"facet/node/wire"
	"facet/router"
)

// newTenant creates a tenant with its first access key.
func (p *Port) newTenant(ctx context.Context, body wire.NewTenant) (wire.TenantKeys, error) {
	key, err := p.cfg.Router.CreateTenant(ctx, body.Name)
	return wire.TenantKeys{Tenant: key.Tenant, Name: body.Name, AccessKey: key.ID, SecretKey: key.Secret}, err
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
	p.cfg.Log.Info("access key made", "key", key.ID)
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
	p.cfg.Log.Info("access key revoked", "key", key)
	return map[string]string{"status": "OK"}, nil
}
