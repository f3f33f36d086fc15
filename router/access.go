package router

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"facet/internal/id"
	"facet/raftfsm"
	"facet/raftfsm/metafsm"
	"facet/router/calls"
	"facet/shard/seal"
)

// Purposes for which the cluster's master secret wraps and authenticates. Stored
// bytes depend on them.
const (
	purposeAPIKey = "api-key"
	purposeSecret = "access-key-secret"
	purposeData   = "gallery-data-key"
)

// keysMax is the most unwrapped data keys in the cache.
const keysMax = 10_000

// AccessKey returns the key pair with the id accessKey. The error is NotFound for
// an unknown id. Before that, this node catches up with meta's leader.
func (r *accessRequests) AccessKey(ctx context.Context, accessKey string) (AccessKey, error) {
	rec, err := confirmedLookup(ctx, r.cluster, func() (metafsm.AccessKey, bool) { return r.cluster.groups.Meta().AccessKey(accessKey) })
	if err != nil {
		r.cluster.master.Wrap([]byte(accessKey), []byte(purposeSecret)) // in the place of Unwrap, so that the time does not reveal the key
		return AccessKey{}, err
	}
	secret, err := r.cluster.master.Unwrap(rec.SealedSecret, []byte(purposeSecret+accessKey))
	if err != nil {
		return AccessKey{}, fmt.Errorf("unwrap an access key's secret: %w", err)
	}
	return AccessKey{
		ID: accessKey, Secret: string(secret), Tenant: rec.Tenant, KeyTerms: termsOf(&rec),
		Disabled: r.cluster.groups.Meta().TenantState(rec.Tenant) != metafsm.TenantActive,
	}, nil
}

// Access returns the application with the API key apiKey, and its gallery. The
// error is Forbidden for an unknown key and for another tenant's key.
func (r *accessRequests) Access(ctx context.Context, tenant id.Tenant, apiKey string) (Access, error) {
	macs := r.cluster.master.MACs(purposeAPIKey, []byte(apiKey)) // two while the cluster's key is being replaced
	app, err := confirmedLookup(ctx, r.cluster, func() (app metafsm.Application, ok bool) {
		for i := 0; i < len(macs) && !ok; i++ {
			app, ok = r.cluster.groups.Meta().ApplicationByMAC(macs[i])
		}
		return app, ok
	})
	if KindOf(err) == NotFound || err == nil && app.Tenant != tenant {
		return Access{}, Errorf(Forbidden, "", "Forbidden")
	}
	if err != nil {
		return Access{}, err
	}
	return Access{Tenant: tenant, Application: app.ID, Gallery: app.Gallery, SearchBounds: boundsOf(app)}, nil
}

// Every node refuses a revoked or deleted key within two seconds. Meta's log brings
// the change to a node, mostly in milliseconds. But a node that is cut off, was away
// or has a slow disk does not notice that the log is late. So a record in this
// node's replica of meta counts only if the replica was level with meta's leader a
// moment ago:
//
//	0 ────────── refreshAfter ─────────────── trustMax ──────────→  age of that moment
//	 it counts  │ it counts; the replica      │ the request waits until the
//	            │ catches up in passing       │ replica has caught up, or fails
//
// The time of the last contact (raftfsm.Status) is no substitute: after a partition
// heartbeats come back seconds before the log does.
const (
	refreshAfter = 500 * time.Millisecond
	trustMax     = 1500 * time.Millisecond
)

// syncing is this node's last successful round of catching up with meta's leader, and the
// node's own writes to meta. It is safe for concurrent use.
type syncing struct {
	last   atomic.Pointer[syncRound]
	writes atomic.Uint64 // that have ended
}

type syncRound struct {
	began  time.Time
	writes uint64 // that had ended before
}

// begin returns a round that begins now.
func (s *syncing) begin() *syncRound { return &syncRound{time.Now(), s.writes.Load()} }

// age returns the time since the last round began. It returns trustMax when there was none since this
// node's last write, which the replica may lack.
func (s *syncing) age() time.Duration {
	last := s.last.Load()
	if last == nil || last.writes != s.writes.Load() {
		return trustMax
	}
	return time.Since(last.began)
}

// confirmedLookup looks something up in this node's replica of meta. The replica
// first catches up with meta's leader in two cases: it has not done so within
// trustMax, or it does not find the thing. The error is NotFound when the thing
// does not exist.
func confirmedLookup[T any](ctx context.Context, r *cluster, look func() (T, bool)) (T, error) {
	age := r.synced.age()
	if age < trustMax {
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

// confirmedGallery returns a gallery of a generation. there is false if it was deleted.
func confirmedGallery(ctx context.Context, r *cluster, gallery id.Gallery, generation uint32) (g enrolment, there bool, err error) {
	g, err = confirmedLookup(ctx, r, func() (enrolment, bool) { return r.gallery(gallery) })
	if KindOf(err) == NotFound {
		return g, false, nil
	}
	return g, err == nil && g.Generation == generation, err
}

// SyncMeta waits until this node's replica of meta has every write that was
// acknowledged before the call. Concurrent callers share the work.
func (r *cluster) SyncMeta(ctx context.Context) error { return r.sync.Join(ctx) }

// SyncMetaSince is SyncMeta for a caller to whom a round that began after since is
// enough.
func (r *cluster) SyncMetaSince(ctx context.Context, since time.Time) error {
	if r.synced.age() < time.Since(since) {
		return nil
	}
	return r.sync.Join(ctx)
}

// syncMeta does the work of SyncMeta for one round.
func (r *cluster) syncMeta(ctx context.Context) error {
	round := r.synced.begin()
	p, err := metaPoint(ctx, r)
	if err != nil {
		return err
	}
	group, ok := r.groups.Group(id.Meta)
	if !ok {
		return &Error{Kind: Unavailable, Message: "this node is starting; try again", RetryAfter: calls.RetryLater}
	}
	if err := group.WaitPoint(ctx, p); err != nil {
		return err
	}
	r.synced.last.Store(round)
	return nil
}

// metaPoint returns the read point of meta's leader. A node without a record, which joins, may
// ask for the index alone (Joins).
func metaPoint(ctx context.Context, r *cluster) (raftfsm.ReadPoint, error) {
	self, err := r.peers.Self().Node()
	if err == nil {
		if _, recorded := r.groups.Meta().Node(self); recorded {
			return calls.CallLeader(ctx, r.calls, groupPoint, id.Meta, struct{}{})
		}
	}
	index, err := calls.CallLeader(ctx, r.calls, metaIndex, id.Meta, struct{}{})
	return raftfsm.ReadPoint{Index: index}, err
}

// enrolment is a gallery together with the shards that it lies on.
type enrolment struct {
	metafsm.Gallery
	shards []id.Shard
}

func (g enrolment) holds(s id.Shard) bool {
	return slices.Contains(g.shards, s)
}

// enrolment returns the gallery and the application of an access.
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

// enrolmentAt is enrolment for a subject or job on the shard at. The client sent an
// id that names this shard. enrolmentAt returns the error of missing when the
// gallery does not lie there. Before that, this node catches up with meta, because
// the gallery may have grown.
func (r *cluster) enrolmentAt(ctx context.Context, access Access, at id.Shard, missing func() error) (enrolment, metafsm.Application, error) {
	g, app, err := r.enrolment(access)
	if err != nil || g.holds(at) {
		return g, app, err
	}
	if record, _ := r.groups.Meta().Cluster(); at == 0 || int(at) > record.Shards {
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
	return enrolment{g, shardsOf(meta, g)}, true
}

// keys caches the unwrapped data keys of galleries. Each key belongs to one
// generation of its gallery.
type keys struct {
	mu  sync.Mutex
	key map[keyName]*seal.Key
}

type keyName struct {
	gallery    id.Gallery
	generation uint32
}

// dataKey returns the key that seals the faces of g.
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
