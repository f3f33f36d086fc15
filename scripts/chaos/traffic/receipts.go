package traffic

import (
	"fmt"
	"maps"
	"slices"
)

// receipt is the receipt of a search.
type receipt struct {
	Epoch  int
	List   []int
	Shards []struct {
		Shard, Active, Searched int
		Index                   uint64
		LeftOut                 map[string]int
	}
}

// receipts are what the receipts of a gallery have shown: the latest epoch, and of each shard the latest
// index and the number of active events there. A copy does not change.
type receipts struct {
	epoch int
	list  []int
	at    map[int]place
}

// place is a place in the log of a shard.
type place struct {
	index  uint64
	active int
}

// with returns r and what got shows. It returns an error for a receipt that does not show a complete
// search, or that is older than before: what was known when the search began. Two replicas have the
// same number of events at the same index.
func (r receipts) with(got *receipt, before receipts) (receipts, error) {
	if got == nil {
		return r, fmt.Errorf("a search without the receipt that it asked for: %w", errAnswer)
	}
	var asked []int
	known := maps.Clone(r.at)
	if known == nil {
		known = map[int]place{}
	}
	for _, s := range got.Shards {
		asked = append(asked, s.Shard)
		sum := s.Searched
		for _, n := range s.LeftOut {
			sum += n
		}
		last := known[s.Shard]
		if sum != s.Active || s.Index < before.at[s.Shard].index || s.Index == last.index && last.index > 0 && s.Active != last.active {
			return r, fmt.Errorf("a receipt that does not hold: %+v after %+v: %w", s, before.at[s.Shard], errAnswer)
		}
		if s.Index > last.index {
			known[s.Shard] = place{s.Index, s.Active}
		}
	}
	slices.Sort(asked)
	list := slices.Sorted(slices.Values(got.List))
	if !slices.Equal(asked, list) || len(list) == 0 || got.Epoch < before.epoch || got.Epoch == before.epoch && !slices.Equal(list, before.list) {
		return r, fmt.Errorf("a receipt of the shards %v with the list %v of epoch %d after %v of %d: %w", asked, got.List, got.Epoch, before.list, before.epoch, errAnswer)
	}
	if got.Epoch > r.epoch {
		r.epoch, r.list = got.Epoch, list
	}
	r.at = known
	return r, nil
}
