package router

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"facet/internal/id"
	"facet/internal/mutant"
	"facet/raftfsm/metafsm"
	"facet/router/calls"
	"facet/shard/seal"
)

// Purposes of what the cluster's master secret wraps and authenticates. They are
// part of stored bytes.
const (
	purposeAPIKey = "api-key"
	purposeSecret = "access-key-secret"
	purposeData   = "gallery-data-key"
)

// keysMax bounds the unwrapped data keys that are kept.
const keysMax = 10_000

// AccessKey looks up the pair that signs a request. An unknown one is NotFound,
// and only said after meta's leader was asked.
func (r *accessRequests) AccessKey(ctx context.Context, accessKey string) (AccessKey, error) {
	rec, err := confirmedLookup(ctx, r.cluster, func() (metafsm.AccessKey, bool) { return r.groups.Meta().AccessKey(accessKey) })
	if err != nil {
		return AccessKey{}, err
	}
	secret, err := r.master.Unwrap(rec.SealedSecret, []byte(purposeSecret+accessKey))
	if err != nil {
		return AccessKey{}, fmt.Errorf("unwrap an access key's secret: %w", err)
	}
	return AccessKey{ID: accessKey, Secret: string(secret), Tenant: rec.Tenant, Role: Role(rec.Role)}, nil
}

// Access gives the application that apiKey names, and its gallery. An unknown key
// or another tenant's is Forbidden.
func (r *accessRequests) Access(ctx context.Context, tenant id.Tenant, apiKey string) (Access, error) {
	macs := r.master.MACs(purposeAPIKey, []byte(apiKey)) // two while the cluster's key is being replaced
	app, err := confirmedLookup(ctx, r.cluster, func() (app metafsm.Application, ok bool) {
		for i := 0; i < len(macs) && !ok; i++ {
			app, ok = r.groups.Meta().ApplicationByMAC(macs[i])
		}
		return app, ok
	})
	if KindOf(err) == NotFound || err == nil && app.Tenant != tenant && !mutant.AnyTenant {
		return Access{}, Errorf(Forbidden, "", "Forbidden")
	}
	if err != nil {
		return Access{}, err
	}
	return Access{Tenant: tenant, Application: app.ID, Gallery: app.Gallery}, nil
}

// What is revoked or deleted is refused by every node within two seconds. A node
// hears of it with meta's log, mostly in milliseconds; but one that is cut off, was
// away or has a slow disk would not notice that it hears nothing. So what is found
// here counts only if the replica was level with meta's leader a moment ago:
//
//	0 ────────── refreshAfter ─────────────── trustMax ──────────→  since then
//	 it counts  │ it counts; the replica      │ the request waits until the
//	            │ catches up in passing       │ replica has caught up, or fails
//
// The time of the last contact (raftfsm.Status) would not do: after a partition
// heartbeats come back seconds before the log does.
const (
	refreshAfter = 500 * time.Millisecond
	trustMax     = 1500 * time.Millisecond
)

// syncedAt is when this node last began to catch up with meta's leader and then
// did. It is safe for concurrent use.
type syncedAt struct{ at atomic.Pointer[time.Time] }

func (s *syncedAt) set(t time.Time) { s.at.Store(&t) }

// age is trustMax when it never was.
func (s *syncedAt) age() time.Duration {
	if at := s.at.Load(); at != nil {
		return time.Since(*at)
	}
	return trustMax
}

// confirmedLookup looks something up in this node's replica of meta. The replica catches
// up with meta's leader before it says that something does not exist, and before
// it says that it does if it has not for trustMax.
func confirmedLookup[T any](ctx context.Context, r *cluster, look func() (T, bool)) (T, error) {
	age := r.synced.age()
	if age < trustMax || mutant.RevokedStays {
		if rec, ok := look(); ok {
			if age >= refreshAfter {
				r.sync.Nudge()
			}
			return rec, nil
		}
	}
	if err := r.sync.Join(ctx); err != nil {
		var none T
		return none, err
	}
	rec, ok := look()
	if !ok {
		return rec, Errorf(NotFound, "", "there is no such thing")
	}
	return rec, nil
}

// SyncMeta brings this node's replica of meta up to all that was acknowledged before
// the call.
func (r *cluster) SyncMeta(ctx context.Context) error { return r.sync.Join(ctx) }

// syncMeta brings this node's replica of meta up to all that was acknowledged
// before the call.
func (r *cluster) syncMeta(ctx context.Context) error {
	began := time.Now()
	index, err := calls.CallLeader(ctx, r.calls, metaIndex, id.Meta, struct{}{})
	if err != nil {
		return err
	}
	group, ok := r.groups.Group(id.Meta)
	if !ok {
		return &Error{Kind: Unavailable, Message: "this node is starting; try again", RetryAfter: calls.RetryLater}
	}
	if err := group.WaitApplied(ctx, index); err != nil {
		return err
	}
	r.synced.set(began)
	return nil
}

// enrolment is a gallery with what requests need of it.
type enrolment struct {
	metafsm.Gallery
	shards []id.Shard
}

func (g enrolment) holds(s id.Shard) bool {
	return slices.Contains(g.shards, s)
}

// enrolment gives the gallery and the application of an access.
func (r *cluster) enrolment(access Access) (enrolment, metafsm.Application, error) {
	meta := r.groups.Meta()
	app, ok := meta.Application(access.Application)
	if !ok {
		return enrolment{}, app, Errorf(Forbidden, "", "Forbidden")
	}
	g, ok := r.gallery(access.Gallery)
	if !ok {
		return enrolment{}, app, Errorf(Forbidden, "", "Forbidden")
	}
	return g, app, nil
}

// enrolmentAt is enrolment for what lies on a shard, and fails with missing if the gallery
// does not lie there: the shard comes from an id that the caller brought. This node may
// not have heard of the gallery's growth, and catches up with meta before it says so.
func (r *cluster) enrolmentAt(ctx context.Context, access Access, at id.Shard, missing func() error) (enrolment, metafsm.Application, error) {
	g, app, err := r.enrolment(access)
	if err != nil || g.holds(at) {
		return g, app, err
	}
	if cluster, _ := r.groups.Meta().Cluster(); at == 0 || int(at) > cluster.Shards {
		return g, app, missing()
	}
	if err := r.sync.Join(ctx); err != nil {
		return g, app, err
	}
	if g, app, err = r.enrolment(access); err == nil && !g.holds(at) {
		err = missing()
	}
	return g, app, err
}

func (r *cluster) gallery(gallery id.Gallery) (enrolment, bool) {
	meta := r.groups.Meta()
	g, ok := meta.Gallery(gallery)
	if !ok {
		return enrolment{}, false
	}
	cluster, _ := meta.Cluster()
	return enrolment{g, metafsm.ShardsOf(g.ID, g.Shards, cluster.Shards)}, true
}

// keys are the data keys of galleries, unwrapped, each as of one generation.
type keys struct {
	mu  sync.Mutex
	key map[keyName]*seal.Key
}

type keyName struct {
	gallery    id.Gallery
	generation uint32
}

// dataKey gives the key that g's faces are sealed with.
func (r *cluster) dataKey(g metafsm.Gallery) (*seal.Key, error) {
	r.keys.mu.Lock()
	defer r.keys.mu.Unlock()
	name := keyName{g.ID, g.Generation}
	if k, ok := r.keys.key[name]; ok {
		return k, nil
	}
	raw, err := r.master.Unwrap(g.WrappedKey, []byte(purposeData+g.ID.String()))
	if err != nil {
		return nil, fmt.Errorf("unwrap the data key of gallery %s: %w", g.ID, err)
	}
	k, err := seal.NewKey(raw)
	if err != nil {
		return nil, err
	}
	if r.keys.key == nil || len(r.keys.key) >= keysMax {
		r.keys.key = map[keyName]*seal.Key{}
	}
	r.keys.key[name] = k
	return k, nil
}
