package httpapi

import (
	"facet/internal/answers"
	"facet/router"
)

// wireReceipt returns nil for nil.
func wireReceipt(r *router.Receipt) *answers.Receipt {
	if r == nil {
		return nil
	}
	body := &answers.Receipt{Epoch: int(r.Epoch), List: make([]int, len(r.List)), Shards: make([]answers.ShardReceipt, len(r.Shards))}
	for i, shard := range r.List {
		body.List[i] = int(shard)
	}
	for i, s := range r.Shards {
		body.Shards[i] = answers.ShardReceipt{
			Shard: int(s.Shard), Index: s.Index, Active: s.Active, Searched: s.Searched, LeftOut: answers.LeftOut{Tags: s.LeftOut},
		}
	}
	return body
}
