package reviews

import (
	"context"
	"errors"

	"facet/internal/fair"
	"facet/internal/id"
	"facet/raftfsm"
	"facet/raftfsm/shardfsm"
	"facet/router"
	"facet/router/calls"
	"facet/router/cluster"
	"facet/shard/job"
	"facet/shard/seal"
)

// look calls f with the cases of a gallery as this node's replica has them. One look at a time runs on a node, so f
// must not wait. The tenants have them in fair turns, because a first look decrypts all cases of the gallery.
func (b *caseBook) look(ctx context.Context, f func(*caseIndex)) error {
	w := b.r.work
	turn, err := w.looks.Enter(ctx, b.tenant)
	if errors.Is(err, fair.ErrFull) {
		return &router.Error{Kind: router.Busy, Message: "too many requests about cases wait; try again", RetryAfter: calls.RetryLater}
	}
	if err != nil {
		return err
	}
	defer turn.End()
	w.uses++
	g := w.of(b.name.Batch)
	g.tenant, g.used = b.tenant, w.uses
	changed, err := g.index.update(b.jobs, b.name, b.key)
	if err != nil {
		return err
	}
	if changed {
		w.makeRoom(g)
		w.note(g, b.now)
	}
	f(&g.index)
	return nil
}

// caseBook is the cases of a gallery on this node, which leads their shard.
type caseBook struct {
	r      *CaseRequests
	group  *raftfsm.Group
	jobs   *job.Book
	name   shardfsm.JobName
	key    *seal.Key
	tenant id.Tenant
	now    int64
}

// readCases returns the cases of a gallery. A look at them has every change that was acknowledged before the call.
func (r *CaseRequests) readCases(ctx context.Context, group id.Shard, name shardfsm.JobName) (*caseBook, error) {
	m, err := r.cluster.LeaderMachine(ctx, group)
	if err != nil {
		return nil, err
	}
	g, s, err := r.cluster.LocalReplica(group)
	if err != nil {
		return nil, err
	}
	if err := s.Check(name.Gallery, name.Generation); err != nil { // it was deleted
		return nil, cluster.Outdated(err)
	}
	key, err := cluster.KeyOf(ctx, r.cluster, name.Gallery)
	if err != nil {
		return nil, err
	}
	of, _ := r.cluster.Groups.Meta().Gallery(name.Gallery) // cluster.KeyOf has waited for it
	return &caseBook{r, g, m.Jobs(), name, key, of.Tenant, r.cluster.Clock.Now().UnixMilli()}, nil
}

// changingCases calls change with the cases of a gallery. Meanwhile nobody else changes them on this node.
func changingCases[A any](ctx context.Context, r *CaseRequests, group id.Shard, name shardfsm.JobName, change func(*caseBook) (A, error)) (a A, err error) {
	of := r.work.of(name.Batch)
	select {
	case of.turn <- struct{}{}:
		defer func() { <-of.turn }()
	case <-ctx.Done():
		return a, ctx.Err()
	}
	b, err := r.readCases(ctx, group, name)
	if err != nil {
		return a, err
	}
	if a, err = change(b); err == nil {
		_ = b.look(ctx, func(*caseIndex) {}) // for the figures
	}
	return a, err
}

// errCaseChanged is returned when another leader changed the cases meanwhile.
var errCaseChanged = &router.Error{Kind: router.Unavailable, Message: "the cases of the gallery have changed meanwhile; try again", RetryAfter: calls.RetryLater}

// put replaces an item by a case, or frees it if c is nil.
func (b *caseBook) put(ctx context.Context, index int, before caseItem, c *job.Case, share shardfsm.JobShare) (shardfsm.Status, error) {
	put := shardfsm.PutItem{Name: b.name, Kind: job.Cases, Index: uint32(index), Old: before.sealed, Time: b.now, Share: share}
	if c != nil {
		put.New = job.SealCase(b.key, b.name.Gallery, b.name.Generation, c)
	}
	a, err := cluster.Propose(ctx, b.group, shardfsm.PutItemOp, put)
	if err != nil || a.Status != shardfsm.Done {
		return a.Status, err
	}
	if c != nil && c.ID == before.ID && before.State == job.CaseOpen && c.State != job.CaseOpen {
		b.r.work.closed[c.State].Add(1)
		if c.State == job.CaseExpired {
			b.expired(c)
		}
	}
	return a.Status, nil
}

// expired reports the expiry of a case.
func (b *caseBook) expired(c *job.Case) {
	if g, ok := b.r.cluster.Find(b.name.Gallery); ok {
		b.r.cluster.Acted(router.Act{Log: g.Tenant, Operation: "expire case", Gallery: router.GalleryVersion{ID: b.name.Gallery, Generation: b.name.Generation}, Case: c.ID})
	}
}
