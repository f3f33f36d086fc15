package httpapi

import (
	"facet/internal/id"
	"facet/router"
)

// receiptBody is a router.Receipt.
type receiptBody struct {
	Epoch  uint32             `json:"epoch"`
	List   []id.Shard         `json:"list"`
	Shards []shardReceiptBody `json:"shards"`
}

type shardReceiptBody struct {
	Shard    id.Shard    `json:"shard"`
	Index    uint64      `json:"index"`
	Active   int         `json:"active"`
	Searched int         `json:"searched"`
	LeftOut  leftOutBody `json:"leftOut"`
}

// leftOutBody has the events that were left out, by reason.
type leftOutBody struct {
	Tags int `json:"tags"`
}

// wireReceipt returns nil for nil.
func wireReceipt(r *router.Receipt) *receiptBody {
	if r == nil {
		return nil
	}
	body := &receiptBody{r.Epoch, r.List, make([]shardReceiptBody, len(r.Shards))}
	for i, s := range r.Shards {
		body.Shards[i] = shardReceiptBody{s.Shard, s.Index, s.Active, s.Searched, leftOutBody{s.LeftOut}}
	}
	return body
}
