package claims

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"facet/internal/id"
	"facet/raftfsm/shardfsm"
	"facet/router"
	"facet/router/calls"
	"facet/router/cluster"
	"facet/router/galleries"
	"facet/router/lookup"
	"facet/shard"
	"facet/shard/claim"
)

// scrubBatch is the most claims or notes that are checked at once.
const scrubBatch = 256

// ScrubClaims checks the external ids of the shards that this node leads. It gives up the claims
// whose subjects do not have the external id: their writes failed, or a node failed before it gave
// them up. It claims the external ids of subjects without a claim, which the home has lost
// (docs/operations.md, FacetHistoryRewritten). It removes the claims of galleries that are gone.
func (r *ClaimRequests) ScrubClaims(ctx context.Context) error {
	var failed []error
	for _, home := range r.Shards() {
		_, m, ok := cluster.LedShard(r.Groups, home)
		if !ok {
			continue
		}
		claimed := m.Claims().Galleries()
		for _, gallery := range slices.SortedFunc(maps.Keys(claimed), byGallery) {
			if err := r.scrubGallery(ctx, home, m.Claims(), gallery, claimed[gallery]); err != nil {
				failed = append(failed, fmt.Errorf("check the claims of gallery %s: %w", gallery, err))
			}
		}
		if err := r.reclaim(ctx, m.Shard()); err != nil {
			failed = append(failed, fmt.Errorf("claim the external ids of shard %d: %w", home, err))
		}
	}
	return errors.Join(failed...)
}

func byGallery(a, b id.Gallery) int { return bytes.Compare(a.UUID[:], b.UUID[:]) }

// scrubGallery checks the claims of a gallery at one home.
func (r *ClaimRequests) scrubGallery(ctx context.Context, home id.Shard, book *claim.Book, gallery id.Gallery, generation uint32) error {
	g, err := cluster.ConfirmedLookup(ctx, r.Cluster, func() (cluster.Gallery, bool) { return r.Cluster.Find(gallery) })
	switch {
	case router.KindOf(err) == router.NotFound || err == nil && g.Generation > generation:
		_, err = calls.CallLeader(ctx, r.Calls, galleries.ShardFence, home, shardfsm.Fence{Gallery: gallery, Generation: generation + 1})
		return err
	case err != nil:
		return err
	}
	var last shard.ExternalName
	for page := book.After(gallery, last, scrubBatch); len(page) > 0; page = book.After(gallery, last, scrubBatch) {
		last = page[len(page)-1].Name
		left, err := r.unnamed(ctx, g, page)
		if err != nil {
			return err
		}
		if len(left) == 0 {
			continue
		}
		// Their writes may be in progress. Their nodes need not claim again then.
		if err := cluster.Pause(ctx, claimWait); err != nil {
			return err
		}
		for _, c := range left {
			if err := r.giveUp(ctx, Named{g, c.Name}, c.Holder.Subject); err != nil {
				return err
			}
		}
	}
	return nil
}

// unnamed returns the claims whose subjects do not have the external id.
func (r *ClaimRequests) unnamed(ctx context.Context, g cluster.Gallery, page []claim.Claim) (out []claim.Claim, err error) {
	for at, of := range lookup.ByShard(page, func(c claim.Claim) id.Shard { return c.Holder.Subject.Shard() }) {
		q := namesQuery{Gallery: g.ID, Generation: g.Generation}
		for _, c := range of {
			q.Subjects = append(q.Subjects, c.Holder.Subject)
		}
		names, err := calls.CallLeader(ctx, r.Calls, shardNames, at, q)
		if err == nil && len(names) != len(of) {
			err = lookup.ErrCount
		}
		if err != nil {
			return nil, err
		}
		for i, c := range of {
			if names[i] != c.Name {
				out = append(out, c)
			}
		}
	}
	return out, nil
}

// reclaim claims the external ids of a shard's subjects that no home knows.
func (r *ClaimRequests) reclaim(ctx context.Context, s *shard.Shard) error {
	for _, gallery := range s.Galleries() {
		g, ok := r.Cluster.Find(gallery)
		if !ok {
			continue // it is being deleted
		}
		for at := uint64(0); ; {
			page, next, err := s.NotedAfter(g.ID, g.Generation, at, scrubBatch)
			if err == nil {
				err = r.reclaimPage(ctx, g, page)
			}
			if err != nil {
				return err
			}
			if next == 0 {
				break
			}
			at = next
		}
	}
	return nil
}

func (r *ClaimRequests) reclaimPage(ctx context.Context, g cluster.Gallery, page []shard.NotedSubject) error {
	for home, of := range lookup.ByShard(page, func(n shard.NotedSubject) id.Shard { return r.homeOf(n.Name) }) {
		q := holdersQuery{Gallery: g.ID, Generation: g.Generation}
		for _, n := range of {
			q.Names = append(q.Names, n.Name)
		}
		held, err := calls.CallLeader(ctx, r.Calls, shardHolders, home, q)
		if err == nil && len(held) != len(of) {
			err = lookup.ErrCount
		}
		if err != nil {
			return err
		}
		var lost []claim.Change
		for i, n := range of {
			if held[i].Subject.IsZero() {
				lost = append(lost, claim.Change{Name: n.Name, Subject: n.Subject})
			}
		}
		if len(lost) == 0 {
			continue
		}
		r.Log.WarnContext(ctx, "claims to external ids were lost and are made again", "gallery", g.ID, "count", len(lost))
		if _, err := r.changeClaims(ctx, home, g, lost); err != nil {
			return err
		}
		for _, c := range lost { // the subject may have gone meanwhile
			if err := r.giveUp(ctx, Named{g, c.Name}, c.Subject); err != nil {
				return err
			}
		}
	}
	return nil
}

// namesQuery asks a shard for the names of its subjects' external ids.
type namesQuery struct {
	Gallery    id.Gallery   `cbor:"1,keyasint"`
	Generation uint32       `cbor:"2,keyasint"`
	Subjects   []id.Subject `cbor:"3,keyasint"`
}

var shardNames = cluster.ShardRead("shard.names", func(s *shard.Shard, q namesQuery) ([]shard.ExternalName, error) {
	if len(q.Subjects) > scrubBatch {
		return nil, router.Errorf(router.InvalidRequest, "", "at most %d subjects at once", scrubBatch)
	}
	names := make([]shard.ExternalName, len(q.Subjects))
	noted, err := s.NotesOf(q.Gallery, q.Generation, q.Subjects)
	for i, a := range noted {
		names[i] = shard.ExternalOf(a.Note)
	}
	return names, err
})

// holdersQuery asks a home for the holders of names.
type holdersQuery struct {
	Gallery    id.Gallery           `cbor:"1,keyasint"`
	Generation uint32               `cbor:"2,keyasint"`
	Names      []shard.ExternalName `cbor:"3,keyasint"`
}

var shardHolders = cluster.MachineRead("shard.holders", func(m *shardfsm.Machine, q holdersQuery) ([]claim.Holder, error) {
	if len(q.Names) > scrubBatch {
		return nil, router.Errorf(router.InvalidRequest, "", "at most %d names at once", scrubBatch)
	}
	held := make([]claim.Holder, len(q.Names))
	for i, name := range q.Names {
		held[i] = m.Claims().Holder(q.Gallery, q.Generation, name)
	}
	return held, nil
})

// Of returns the commands that claim the external ids of restored subjects, by the home shard
// of each in a cluster of so many shards.
func Of(g id.Gallery, generation uint32, shards int, noted []shard.NotedSubject) map[id.Shard]shardfsm.Claim {
	out := map[id.Shard]shardfsm.Claim{}
	for home, of := range lookup.ByShard(noted, func(n shard.NotedSubject) id.Shard { return homeAmong(n.Name, shards) }) {
		c := shardfsm.Claim{Gallery: g, Generation: generation}
		for _, n := range of {
			c.Changes = append(c.Changes, claim.Change{Name: n.Name, Subject: n.Subject})
		}
		out[home] = c
	}
	return out
}
