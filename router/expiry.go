package router

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"facet/internal/id"
	"facet/raftfsm"
	"facet/raftfsm/shardfsm"
	"facet/shard"
)

const (
	// RetentionDaysMax is the longest retention of a gallery.
	RetentionDaysMax = 36500
	// expireBatch is the most events that one command expires. They take 45 KB of the log
	// and a few milliseconds of the machine.
	expireBatch = 1000
	// dayMillis is a day in milliseconds.
	dayMillis = 24 * 3_600_000
)

// expiry returns the stored form of a time of expiry. The zero time, none, is 0.
func (r *cluster) expiry(at time.Time) (int64, error) {
	if at.IsZero() {
		return 0, nil
	}
	if !at.After(r.clock.Now()) {
		return 0, Errorf(InvalidRequest, "", "the time in expires must be in the future")
	}
	return at.UnixMilli(), nil
}

// Retention returns how long a gallery keeps its events, for Shard.Due. This node's
// replica of meta may be behind.
func (r *cluster) Retention(g id.Gallery) (kept int64, known bool) {
	record, known := r.groups.Meta().Gallery(g)
	return enrolment{Gallery: record}.kept(), known
}

// kept returns the retention of the gallery in milliseconds, or 0.
func (g enrolment) kept() int64 { return int64(g.RetentionDays) * dayMillis }

// ends returns when a copy of an event expires that becomes another entry: not later than
// the event, in milliseconds since 1970, or 0 for never.
func (g enrolment) ends(a shard.Active) int64 {
	if at := expiresAt(g.kept(), a.Time, a.Expires); !at.IsZero() {
		return at.UnixMilli()
	}
	return 0
}

// expiresAt returns when an event expires that was updated at a time and has the time own,
// or 0: the earlier of own and the end of the gallery's retention kept, if that is not 0. It
// returns the zero time for never.
func expiresAt(kept, updated, own int64) time.Time {
	if end := updated + kept; kept > 0 && (own == 0 || end < own) {
		own = end
	}
	if own == 0 {
		return time.Time{}
	}
	return time.UnixMilli(own).UTC()
}

// expiryRequests expires events on the shards that this node leads.
type expiryRequests struct{ *subjectRequests }

// Expired is the outcome of ExpireEvents.
type Expired struct {
	// Events is how many events expired, Waiting how many are due but wait because this
	// node's clock agrees with no majority.
	Events, Waiting int
}

// ExpireEvents expires the events that are due on the shards that this node leads. It does
// nothing while this node's clock agrees with no majority: a clock that is ahead would
// erase what must stay.
func (r *expiryRequests) ExpireEvents(ctx context.Context) (Expired, error) {
	var out Expired
	var mu sync.Mutex // guards out and failed
	var failed []error
	var work sync.WaitGroup
	cluster, _ := r.groups.Meta().Cluster()
	for s := id.Shard(1); int(s) <= cluster.Shards; s++ {
		g, ok := r.groups.Group(s)
		m, here := r.groups.Shard(s)
		if !ok || !here || !g.IsLeader() {
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
func (r *expiryRequests) expireOn(ctx context.Context, g *raftfsm.Group, s *shard.Shard) (out Expired, err error) {
	for {
		now, agrees := r.clock.Trusted()
		due := s.Due(now.UnixMilli(), r.Retention, expireBatch)
		if !agrees || len(due) == 0 {
			for _, x := range due {
				out.Waiting += len(x.Events)
			}
			return out, nil
		}
		if byRetention(due) {
			// A longer retention counts from the answer to its change on.
			if err := r.sync.Join(ctx); err != nil {
				return out, err
			}
			due = s.Due(now.UnixMilli(), r.Retention, expireBatch)
		}
		c, named := shardfsm.Expire{Time: now.UnixMilli()}, 0
		subjects := make([][]Salted, len(due))
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
		a, err := propose(ctx, g, shardfsm.ExpireOp, c)
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
func (r *expiryRequests) expired(x shard.Expiration, n int, subjects []Salted) {
	if g, ok := r.gallery(x.Gallery); ok && n > 0 {
		r.acted(Act{Log: g.Tenant, Operation: "expire events", Gallery: GalleryVersion{x.Gallery, x.Generation}, Count: n, Subjects: subjects})
	}
}

// addHeirs adds the events that get the notes of x's subjects.
func (r *expiryRequests) addHeirs(ctx context.Context, x shard.Expiration) error {
	g, ok := r.gallery(x.Gallery)
	if !ok {
		return nil // it is being deleted
	}
	for _, i := range x.Noted {
		e := &x.Events[i]
		state, err := r.subject(ctx, g, subjectQuery{Subject: e.Subject, Heir: true})
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
