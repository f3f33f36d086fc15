package router

import (
	"context"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/router/calls"
	"facet/shard/scan"
)

// Receipt states what a search went through. List and Shards come from different places, and so do the
// counts of a shard, so that a search that was not complete shows:
//
//   - Shards has each shard of List once;
//   - Searched and LeftOut of each shard add up to its Active.
//
// No later receipt of the gallery has a lower epoch, or a lower index for a shard.
type Receipt struct {
	// Epoch numbers the gallery's lists of shards. List is that list, by meta.
	Epoch uint32
	List  []id.Shard
	// Shards has the statements of the shards that answered, in the order of their answers.
	Shards []ShardReceipt
}

// ShardReceipt is the statement of one shard.
type ShardReceipt struct {
	Shard id.Shard `cbor:"1,keyasint"`
	// Index is the index in the group's log at which the shard was searched, and Active the number of
	// active events there.
	Index  uint64 `cbor:"2,keyasint"`
	Active int    `cbor:"3,keyasint"`
	// Searched counts the events that were compared, or excluded by their bounds, and LeftOut those
	// without any of the search's tags.
	Searched int `cbor:"4,keyasint"`
	LeftOut  int `cbor:"5,keyasint"`
}

// withReceipt returns the hits of a shard and, behind them, its statement about c, unless c is nil.
func withReceipt(hits []notedHit, group id.Shard, c *scan.Coverage) []notedHit {
	if c == nil {
		return hits
	}
	return append(hits, notedHit{Receipt: receiptOfShard(group, c)})
}

// receiptOfShard returns the statement of a shard about c, or nil if c is nil.
func receiptOfShard(group id.Shard, c *scan.Coverage) *ShardReceipt {
	if c == nil {
		return nil
	}
	return &ShardReceipt{group, c.Index, c.Active, c.Searched, c.LeftOut}
}

// errNoReceipt is returned for a search that asks for a receipt while a node does not know of them.
var errNoReceipt = &Error{
	Kind: Unavailable, RetryAfter: calls.RetryLater,
	Message: "a shard gave no receipt; receipts work as soon as all nodes run this version: finish the upgrade, then try again",
}

// showReceipt prepares a receipt for the client: no node answers the next search by an older list. Without a
// receipt the error is errNoReceipt.
func (r *searchRequests) showReceipt(ctx context.Context, gallery id.Gallery, receipt *Receipt) error {
	if receipt == nil {
		return errNoReceipt
	}
	if g, ok := r.cluster.gallery(gallery); ok && g.Settled != 0 {
		return settleList(ctx, r.cluster, gallery)
	}
	return nil
}

// receiptOf removes the statements of the shards from their lists, and joins them. It returns nil if a list
// has none.
func receiptOf(r *cluster, g metafsm.Gallery, lists [][]notedHit) *Receipt {
	receipt := emptyReceipt(r, g)
	if !take(receipt, lists) {
		return nil
	}
	return receipt
}

// receiptOfMatches joins the statements of the shards of a page. It returns nil if a shard gave none.
func receiptOfMatches(r *cluster, g metafsm.Gallery, lists []matchesAnswer) *Receipt {
	receipt := emptyReceipt(r, g)
	for _, l := range lists {
		if l.Receipt == nil {
			return nil
		}
		receipt.Shards = append(receipt.Shards, *l.Receipt)
	}
	return receipt
}

// emptyReceipt returns a receipt of a gallery without statements.
func emptyReceipt(r *cluster, g metafsm.Gallery) *Receipt {
	return &Receipt{Epoch: g.Epoch, List: shardsOf(r.groups.Meta(), g)}
}

// take moves the statements of the shards from their lists to the receipt. It reports whether each list
// has one.
func take(r *Receipt, lists [][]notedHit) (complete bool) {
	complete = true
	for i, list := range lists {
		hits := list[:0]
		for _, h := range list {
			if h.Receipt != nil {
				r.Shards = append(r.Shards, *h.Receipt)
				continue
			}
			hits = append(hits, h)
		}
		complete = complete && len(hits) < len(list)
		lists[i] = hits
	}
	return complete
}
