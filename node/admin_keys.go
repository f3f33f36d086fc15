package node

import (
	"context"
	"net/http"

	"facet/node/wire"
	"facet/router"
)

// serveKeys lists the access keys of the tenant that the query names.
func (n *Node) serveKeys(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), adminTimeout)
	defer cancel()
	var records []router.KeyRecord
	tenant, err := n.router.TenantNamed(ctx, r.URL.Query().Get("tenant"))
	if err == nil {
		records, err = n.router.AccessKeys(ctx, tenant)
	}
	if err != nil {
		n.explain(w, "list access keys", err)
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
func (n *Node) serveNewKey(w http.ResponseWriter, r *http.Request) {
	var body wire.NewKey
	if !readBody(w, r, &body) {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), adminTimeout)
	defer cancel()
	key, old, err := n.newKey(ctx, body)
	if err != nil {
		n.explain(w, "create access key", err)
		return
	}
	n.log.Info("access key made", "key", key.ID)
	answer(w, http.StatusCreated, wire.KeyPair{
		Tenant: body.Tenant, Role: key.Role.String(), AccessKey: key.ID, SecretKey: key.Secret, Old: old,
	})
}

func (n *Node) newKey(ctx context.Context, body wire.NewKey) (key router.AccessKey, old string, err error) {
	role, err := router.ParseRole(body.Role)
	if err != nil {
		return key, "", err
	}
	tenant, err := n.router.TenantNamed(ctx, body.Tenant)
	if err != nil {
		return key, "", err
	}
	if body.Rotate {
		return n.router.RotateAccessKey(ctx, tenant, role)
	}
	key, err = n.router.CreateAccessKey(ctx, tenant, role)
	return key, "", err
}

// serveRevokeKey revokes an access key of the tenant that the query names.
func (n *Node) serveRevokeKey(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), adminTimeout)
	defer cancel()
	key := r.PathValue("key")
	tenant, err := n.router.TenantNamed(ctx, r.URL.Query().Get("tenant"))
	if err == nil {
		err = n.router.RevokeAccessKey(ctx, tenant, key)
	}
	if err != nil {
		n.explain(w, "revoke access key", err)
		return
	}
	n.log.Info("access key revoked", "key", key)
	answer(w, http.StatusOK, map[string]string{"status": "OK"})
}
