package client

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// ErrReceipt is returned when the receipt of a search doesn't show that the search was complete, or is older than one that
// the client has seen. The result comes with it. Tell the operators: a shard lost events, a replica is behind, or
// the cluster was restored from a backup. For the last, make a new Client.
var ErrReceipt = errors.New("the receipt of the search does not hold")

// leftOutByTags is the reason for which a search with tags leaves events out.
const leftOutByTags = "tags"

// check returns an error that wraps ErrReceipt unless the numbers of the statement agree. Only a search with tags leaves
// events out.
func (s ShardReceipt) check(tagged bool) error {
	tags := s.LeftOut[leftOutByTags]
	for reason := range s.LeftOut {
		if reason != leftOutByTags {
			return fmt.Errorf("%w: shard %d left out events for the unknown reason %q: a newer client may know it", ErrReceipt, s.Shard, reason)
		}
	}
	switch {
	case s.Active < 0 || s.Searched < 0 || tags < 0:
		return fmt.Errorf("%w: shard %d has a negative number: %d active events, %d searched, %d left out", ErrReceipt, s.Shard, s.Active, s.Searched, tags)
	case tags > 0 && !tagged:
		return fmt.Errorf("%w: shard %d left out %d events by tag in a search without tags", ErrReceipt, s.Shard, tags)
	case s.Searched+tags != s.Active:
		return fmt.Errorf("%w: shard %d has %d events, and %d were searched or left out", ErrReceipt, s.Shard, s.Active, s.Searched+tags)
	}
	return nil
}

// heights are the latest epoch and its list, and the index of each shard, that receipts of one gallery have shown.
type heights struct {
	epoch   int
	list    []int
	indexes map[int]uint64
}

// receipts are the heights that a client has seen.
type receipts struct {
	mu   sync.Mutex
	seen heights
}

// now returns what was seen so far.
func (r *receipts) now() heights {
	r.mu.Lock()
	defer r.mu.Unlock()
	return heights{r.seen.epoch, r.seen.list, maps.Clone(r.seen.indexes)}
}

// check returns an error that wraps ErrReceipt unless the receipt shows a complete search, which had tags or not.
// before is what was seen when the search began: searches that run at once may end in any order.
func (r *receipts) check(got *Receipt, tagged bool, before heights) error {
	if got == nil {
		return fmt.Errorf("%w: there is none", ErrReceipt)
	}
	asked := slices.Clone(got.List)
	slices.Sort(asked)
	if len(slices.Compact(asked)) < len(got.List) {
		return fmt.Errorf("%w: a shard is twice in the list %v", ErrReceipt, got.List)
	}
	for _, s := range got.Shards {
		i := slices.Index(asked, s.Shard)
		if i < 0 {
			return fmt.Errorf("%w: shard %d is twice in it, or not in the list %v", ErrReceipt, s.Shard, got.List)
		}
		asked = slices.Delete(asked, i, i+1)
		if err := s.check(tagged); err != nil {
			return err
		}
		if s.Index < before.indexes[s.Shard] {
			return fmt.Errorf("%w: shard %d was searched at index %d, and earlier at %d", ErrReceipt, s.Shard, s.Index, before.indexes[s.Shard])
		}
	}
	switch {
	case len(asked) > 0 || len(got.List) == 0:
		return fmt.Errorf("%w: shards %v of the list %v are not in it", ErrReceipt, asked, got.List)
	case got.Epoch < before.epoch || got.Epoch == before.epoch && !slices.Equal(got.List, before.list):
		return fmt.Errorf("%w: epoch %d of the shards %v, and earlier epoch %d of %v", ErrReceipt, got.Epoch, got.List, before.epoch, before.list)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if got.Epoch > r.seen.epoch {
		r.seen.epoch, r.seen.list = got.Epoch, got.List
	}
	if r.seen.indexes == nil {
		r.seen.indexes = make(map[int]uint64)
	}
	for _, s := range got.Shards {
		r.seen.indexes[s.Shard] = max(r.seen.indexes[s.Shard], s.Index)
	}
	return nil
}
