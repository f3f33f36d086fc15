package subjects

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"facet/internal/id"
	"facet/raftfsm"
	"facet/raftfsm/shardfsm"
	"facet/router"
	"facet/router/cluster"
	"facet/router/lookup"
	"facet/shard"
)

// expireBatch is the most events that one command expires. They take 45 KB of the log
// and a few milliseconds of the machine.
const expireBatch = 1000

// Retention returns how long a gallery keeps its events, for Shard.Due. This node's
// replica of meta may be behind.
func (r *SubjectRequests) Retention(g id.Gallery) (kept int64, known bool) {
	record, known := r.cluster.Groups.Meta().Gallery(g)
	return cluster.Gallery{Gallery: record}.Kept(), known
}

// ExpireEvents expires the events that are due on the shards that this node leads. It does
// nothing while this node's clock agrees with no majority: a clock that is ahead would
// erase what must stay.
func (r *SubjectRequests) ExpireEvents(ctx context.Context) (router.Expired, error) {
	var out router.Expired
	var mu sync.Mutex // guards out and failed
	var failed []error
	var work sync.WaitGroup
	for _, s := range r.cluster.Shards() {
		g, m, ok := cluster.LedShard(r.cluster.Groups, s)
		if !ok {
			continue
		}
		work.Go(func() {
			of, err := r.expireOn(ctx, g, m.Shard())
			mu.Lock()
			defer mu.Unlock()
			out.Events, out.Waiting = out.Events+of.Events, out.Waiting+of.Waiting
			if err != nil {
				failed = append(failed, fmt.Errorf("expire events of shard %d: %w", s, err))
			}
		})
	}
	work.Wait()
	return out, errors.Join(failed...)
}

// expireOn expires the events that are due on a shard, batch by batch.
func (r *SubjectRequests) expireOn(ctx context.Context, g *raftfsm.Group, s *shard.Shard) (out router.Expired, err error) {
	for {
		now, agrees := r.cluster.Clock.Trusted()
		due := s.Due(now.UnixMilli(), r.Retention, expireBatch)
		if !agrees || len(due) == 0 {
			for _, x := range due {
				out.Waiting += len(x.Events)
			}
			return out, nil
		}
		if byRetention(due) {
			// A longer retention counts from the answer to its change on.
			if err := r.cluster.SyncMeta(ctx); err != nil {
				return out, err
			}
			due = s.Due(now.UnixMilli(), r.Retention, expireBatch)
		}
		c, named := shardfsm.Expire{Time: now.UnixMilli()}, 0
		subjects := make([][]router.Salted, len(due))
		for i, x := range due {
			if err := r.addHeirs(ctx, x); err != nil {
				return out, err
			}
			if subjects[i], err = expiredSubjects(r.cluster, s, &x); err != nil {
				return out, err
			}
			c.Slices = append(c.Slices, shardfsm.ExpireSlice{Gallery: x.Gallery, Generation: x.Generation, Updated: x.Updated, Events: x.Events})
			named += len(x.Events)
		}
		if named == 0 {
			return out, nil
		}
		a, err := cluster.Propose(ctx, g, shardfsm.ExpireOp, c)
		if err != nil {
			return out, err
		}
		for i, n := range a.Each {
			r.expired(due[i], int(n), subjects[i])
		}
		if out.Events += int(a.Expired); a.Expired == 0 {
			return out, nil
		}
	}
}

// expired reports the events of a gallery that a batch has expired.
func (r *SubjectRequests) expired(x shard.Expiration, n int, subjects []router.Salted) {
	if g, ok := r.cluster.Find(x.Gallery); ok && n > 0 {
		r.cluster.Acted(router.Act{Log: g.Tenant, Operation: "expire events", Gallery: router.GalleryVersion{ID: x.Gallery, Generation: x.Generation}, Count: n, Subjects: subjects})
	}
}

// addHeirs adds the events that get the notes of x's subjects.
func (r *SubjectRequests) addHeirs(ctx context.Context, x shard.Expiration) error {
	g, ok := r.cluster.Find(x.Gallery)
	if !ok {
		return nil // it is being deleted
	}
	for _, i := range x.Noted {
		e := &x.Events[i]
		state, err := lookup.Subject(ctx, r.cluster, g, lookup.SubjectQuery{Subject: e.Subject, Heir: true})
		if err != nil {
			return err
		}
		heir, err := r.heir(g, e.Subject, state)
		if err != nil {
			return err
		}
		e.Heir = shard.Heir(heir)
	}
	return nil
}

func byRetention(due []shard.Expiration) bool {
	for _, x := range due {
		if x.Updated > 0 {
			return true
		}
	}
	return false
}
