package tenants

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"facet/internal/id"
	"facet/raftfsm"
	"facet/raftfsm/metafsm"
	"facet/router"
	"facet/router/admission"
	"facet/router/calls"
	"facet/router/cluster"
	"facet/router/secrets"
)

// Meta's leader changes access keys, one at a time, and only when its replica has all
// earlier changes. So the limit of two keys is checked against all existing keys, and
// a request that arrives late or twice finds its own earlier change.
//
//	create   →  live ─── revoke ──→ revoked (listed, secret erased) ──→ forgotten
//	rotate   →  live, beside the older key, which is to be revoked
const (
	// liveKeysMax is the most access keys of one role and holder that a tenant may have in
	// use: one, and its successor while clients change over.
	liveKeysMax = 2
	// revokedKeysMax is the most revoked keys of a tenant that stay listed.
	revokedKeysMax = 32
)

// TenantNamed returns the tenant with this name. The error is NotFound when there
// is none.
func (r *TenantRequests) TenantNamed(ctx context.Context, name string) (id.Tenant, error) {
	if err := r.cluster.SyncMeta(ctx); err != nil {
		return id.Tenant{}, err
	}
	for _, t := range r.cluster.Groups.Meta().Tenants() {
		if t.Name == name {
			return t.ID, nil
		}
	}
	return id.Tenant{}, router.Errorf(router.NotFound, "", "there is no tenant %q", name)
}

// AccessKeys returns a tenant's access keys, the oldest first: all keys in use, and
// the keys that were revoked last.
func (r *TenantRequests) AccessKeys(ctx context.Context, tenant id.Tenant) ([]router.KeyRecord, error) {
	if err := r.cluster.SyncMeta(ctx); err != nil {
		return nil, err
	}
	var list []router.KeyRecord
	for _, k := range byAge(r.cluster.Groups.Meta().AccessKeys(tenant)) {
		list = append(list, router.KeyRecord{
			ID: k.ID, KeyTerms: termsOf(&k), Revoked: k.State == metafsm.KeyRevoked,
			Created: time.UnixMilli(k.Created).UTC(), Used: timeOf(k.Used),
		})
	}
	return list, nil
}

func byAge(keys []metafsm.AccessKey) []metafsm.AccessKey {
	slices.SortFunc(keys, func(a, b metafsm.AccessKey) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.ID, b.ID))
	})
	return keys
}

// CreateAccessKey creates an access key of a tenant. Its secret can't be shown
// again. The error is Duplicate when the holder has two keys of the role, NotFound when the
// tenant has not all the galleries, and OverQuota when it has the most keys of all roles.
func (r *TenantRequests) CreateAccessKey(ctx context.Context, tenant id.Tenant, terms router.KeyTerms) (router.AccessKey, error) {
	key, _, err := r.newKey(ctx, tenant, terms, false)
	return key, err
}

// RotateAccessKey creates a second access key of a role and holder, for the galleries and networks of the
// first one. It ends as the first one does unless terms say when. old is the id of the key
// in use, which is to be revoked when all clients use the new key. The error is
// NotFound when the holder has no key of the role, and Duplicate when it has two.
func (r *TenantRequests) RotateAccessKey(ctx context.Context, tenant id.Tenant, terms router.KeyTerms) (key router.AccessKey, old string, err error) {
	return r.newKey(ctx, tenant, terms, true)
}

func (r *TenantRequests) newKey(ctx context.Context, tenant id.Tenant, terms router.KeyTerms, rotate bool) (key router.AccessKey, old string, err error) {
	if err := checkTerms(&terms); err != nil {
		return router.AccessKey{}, "", err
	}
	if !rotate {
		if err := checkHolder(terms.Holder); err != nil {
			return router.AccessKey{}, "", err
		}
	}
	for _, g := range terms.Galleries {
		if found, ok := r.cluster.Groups.Meta().Gallery(g); !ok || found.Tenant != tenant {
			return router.AccessKey{}, "", router.Errorf(router.NotFound, "", "the tenant has no gallery %s", g)
		}
	}
	k := recordOf(&terms)
	k.ID, k.Tenant, k.Created = accessKeyPrefix+cluster.RandomText(accessKeyLength), tenant, time.Now().UnixMilli()
	if !terms.Ends.IsZero() && terms.Ends.UnixMilli() <= k.Created {
		return router.AccessKey{}, "", hasEnded(terms.Ends)
	}
	secret := cluster.RandomText(secretKeyLength)
	k.SealedSecret = r.cluster.Master.Wrap([]byte(secret), []byte(secrets.PurposeSecret+k.ID))
	a, err := calls.CallLeader(ctx, r.cluster.Calls, metaNewKey, id.Meta, newKeyQuery{Rotate: rotate, Key: k})
	if err != nil {
		return router.AccessKey{}, "", err
	}
	if a.Key != nil {
		k = *a.Key
	}
	return router.AccessKey{ID: k.ID, Secret: secret, Tenant: tenant, KeyTerms: termsOf(&k)}, a.Old, nil
}

// NoteKeyUses notes when access keys were used last.
func (r *TenantRequests) NoteKeyUses(ctx context.Context, uses map[string]time.Time) error {
	var c metafsm.NoteKeyUses
	for _, key := range slices.Sorted(maps.Keys(uses)) {
		c.Uses = append(c.Uses, metafsm.KeyUse{Key: key, At: uses[key].UnixMilli()})
	}
	_, err := cluster.ProposeMeta(ctx, r.cluster, metafsm.NoteKeyUsesOp, c)
	return err
}

// RevokeAccessKey revokes an access key. Within two seconds every node refuses it
// or answers with an error (cluster.ConfirmedLookup). A revoked key may be revoked again.
// The error is NotFound when the tenant does not have the key.
func (r *TenantRequests) RevokeAccessKey(ctx context.Context, tenant id.Tenant, accessKey string) error {
	_, err := calls.CallLeader(ctx, r.cluster.Calls, metaRevokeKey, id.Meta, revokeKeyQuery{Tenant: tenant, Key: accessKey})
	return err
}

// newKeyQuery asks for an access key. The caller has chosen its id and secret.
type newKeyQuery struct {
	Key    metafsm.AccessKey `cbor:"1,keyasint"`
	Rotate bool              `cbor:"2,keyasint,omitempty"`
}

// newKeyAnswer names the older key of the same role and holder, if there is one, and has a successor's
// terms, if they are others than the caller's.
type newKeyAnswer struct {
	Old string             `cbor:"1,keyasint,omitempty"`
	Key *metafsm.AccessKey `cbor:"2,keyasint,omitempty"`
}

type revokeKeyQuery struct {
	Tenant id.Tenant `cbor:"1,keyasint"`
	Key    string    `cbor:"2,keyasint"`
}

var metaNewKey = calls.NewMethod("meta.key.new", func(ctx context.Context, r *TenantRequests, group id.Shard, q newKeyQuery) (newKeyAnswer, error) {
	g, done, err := r.keyTurn(ctx, group)
	if err != nil {
		return newKeyAnswer{}, err
	}
	defer done()
	a, known, err := admitKey(&q, r.cluster.Groups.Meta().AccessKeys(q.Key.Tenant))
	if known || err != nil {
		return a, err
	}
	return a, putKey(ctx, g, q.Key)
})

var metaRevokeKey = calls.NewMethod("meta.key.revoke", func(ctx context.Context, r *TenantRequests, group id.Shard, q revokeKeyQuery) (struct{}, error) {
	g, done, err := r.keyTurn(ctx, group)
	if err != nil {
		return struct{}{}, err
	}
	defer done()
	keys := r.cluster.Groups.Meta().AccessKeys(q.Tenant)
	i := slices.IndexFunc(keys, func(k metafsm.AccessKey) bool { return k.ID == q.Key })
	if i < 0 {
		return struct{}{}, router.Errorf(router.NotFound, "", "the tenant has no access key %q", q.Key)
	}
	if keys[i].State == metafsm.KeyRevoked {
		return struct{}{}, nil
	}
	keys[i].State, keys[i].SealedSecret = metafsm.KeyRevoked, nil
	if err := putKey(ctx, g, keys[i]); err != nil {
		return struct{}{}, err
	}
	return struct{}{}, forgetKeys(ctx, g, keys)
})

// keyTurn waits until no other access key is being changed here, and until this
// node's replica of meta, which must lead, has every earlier change. The caller
// calls done after its change.
func (r *TenantRequests) keyTurn(ctx context.Context, group id.Shard) (g *raftfsm.Group, done func(), err error) {
	g, ok := r.cluster.Groups.Group(group)
	if !ok {
		return nil, nil, &raftfsm.NotLeaderError{}
	}
	select {
	case r.keyChange <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	done = func() { <-r.keyChange }
	index, err := g.ReadIndex(ctx)
	if err == nil {
		err = g.WaitApplied(ctx, index)
	}
	if err != nil {
		done()
		return nil, nil, err
	}
	return g, done, nil
}

// admitKey decides whether a tenant with these keys may get one more, and gives a successor the terms of
// the key before. known reports that an earlier try of the same request has already created it.
func admitKey(q *newKeyQuery, keys []metafsm.AccessKey) (a newKeyAnswer, known bool, err error) {
	var live []metafsm.AccessKey
	for _, k := range byAge(keys) {
		switch {
		case k.ID == q.Key.ID && k.State == metafsm.KeyRevoked:
			return a, true, router.Errorf(router.Duplicate, "", "the access key %s was revoked meanwhile", k.ID)
		case k.ID == q.Key.ID:
			known = true
			q.Key = k
		case k.State == metafsm.KeyLive && k.Role == q.Key.Role && k.Holder == q.Key.Holder:
			live = append(live, k)
		}
	}
	whose := ""
	if q.Key.Holder != "" {
		whose = " for " + q.Key.Holder
	}
	switch {
	case known:
	case len(live) >= liveKeysMax:
		return a, false, router.Errorf(router.Duplicate, "", "the tenant has two access keys of the role %s%s in use, %s and %s: revoke one of them first, or name another holder",
			router.Role(q.Key.Role), whose, live[0].ID, live[1].ID)
	case q.Rotate && len(live) == 0:
		return a, false, router.Errorf(router.NotFound, "", "the tenant has no access key of the role %s%s in use: create one", router.Role(q.Key.Role), whose)
	}
	if len(live) > 0 {
		a.Old = live[0].ID
	}
	if q.Rotate {
		if !known {
			old := live[0]
			q.Key.Galleries, q.Key.Networks, q.Key.Ends = old.Galleries, old.Networks, cmp.Or(q.Key.Ends, old.Ends)
			if q.Key.Ends != 0 && q.Key.Ends <= q.Key.Created {
				return a, false, hasEnded(timeOf(old.Ends))
			}
		}
		k := q.Key
		k.SealedSecret = nil
		a.Key = &k
	}
	return a, known, nil
}

// hasEnded returns the error for a new access key that could never be used.
func hasEnded(at time.Time) error {
	return router.Errorf(router.InvalidRequest, "", "the access key would have ended at %s already: give an end to come", at.UTC().Format(time.RFC3339))
}

// putKey commits an access key.
func putKey(ctx context.Context, g *raftfsm.Group, k metafsm.AccessKey) error {
	a, err := cluster.Propose(ctx, g, metafsm.PutAccessKeyOp, metafsm.PutAccessKey{Key: k})
	switch {
	case err != nil:
		return err
	case a.Status == metafsm.UnknownTenant:
		return router.Errorf(router.NotFound, "", "there is no such tenant")
	case a.Status == metafsm.OtherKey:
		return secrets.ErrRetired
	case a.Status == metafsm.OverAccessKeys:
		return admission.OverQuota(metafsm.QuotaAccessKeys, 0)
	case a.Status != metafsm.Done:
		return fmt.Errorf("put access key: meta answered %v", a.Status)
	}
	return nil
}

// forgetKeys removes a tenant's oldest revoked keys beyond revokedKeysMax.
func forgetKeys(ctx context.Context, g *raftfsm.Group, keys []metafsm.AccessKey) error {
	revoked := byAge(slices.DeleteFunc(keys, func(k metafsm.AccessKey) bool { return k.State != metafsm.KeyRevoked }))
	for ; len(revoked) > revokedKeysMax; revoked = revoked[1:] {
		c := metafsm.DeleteAccessKey{Tenant: revoked[0].Tenant, Key: revoked[0].ID}
		if _, err := cluster.Propose(ctx, g, metafsm.DeleteAccessKeyOp, c); err != nil {
			return err
		}
	}
	return nil
}

// The shape of access keys: an identifier that may be logged, and a secret.
const (
	accessKeyPrefix = "FACET"
	accessKeyLength = 15
	secretKeyLength = 40
)
