package searches

import (
	"context"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/router"
	"facet/router/calls"
	"facet/router/cluster"
	"facet/shard/scan"
)

// withReceipt returns the hits of a shard and, behind them, its statement about c, unless c is nil.
func withReceipt(hits []NotedHit, group id.Shard, c *scan.Coverage) []NotedHit {
	if c == nil {
		return hits
	}
	return append(hits, NotedHit{Receipt: receiptOfShard(group, c)})
}

// receiptOfShard returns the statement of a shard about c, or nil if c is nil.
func receiptOfShard(group id.Shard, c *scan.Coverage) *router.ShardReceipt {
	if c == nil {
		return nil
	}
	return &router.ShardReceipt{Shard: group, Index: c.Index, Active: c.Active, Searched: c.Searched, LeftOut: c.LeftOut}
}

// errNoReceipt is returned for a search that asks for a receipt while a node does not know of them.
var errNoReceipt = &router.Error{
	Kind: router.Unavailable, RetryAfter: calls.RetryLater,
	Message: "a shard gave no receipt; receipts work as soon as all nodes run this version: finish the upgrade, then try again",
}

// showReceipt prepares a receipt for the client: no node answers the next search by an older list. Without a
// receipt the error is errNoReceipt.
func (r *SearchRequests) showReceipt(ctx context.Context, gallery id.Gallery, receipt *router.Receipt) error {
	if receipt == nil {
		return errNoReceipt
	}
	if g, ok := r.cluster.Find(gallery); ok && g.Settled != 0 {
		return cluster.SettleList(ctx, r.cluster, gallery)
	}
	return nil
}

// ReceiptOf removes the statements of the shards from their lists, and joins them. It returns nil if a list
// has none.
func ReceiptOf(r *cluster.Cluster, g metafsm.Gallery, lists [][]NotedHit) *router.Receipt {
	receipt := emptyReceipt(r, g)
	if !take(receipt, lists) {
		return nil
	}
	return receipt
}

// receiptOfMatches joins the statements of the shards of a page. It returns nil if a shard gave none.
func receiptOfMatches(r *cluster.Cluster, g metafsm.Gallery, lists []matchesAnswer) *router.Receipt {
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
func emptyReceipt(r *cluster.Cluster, g metafsm.Gallery) *router.Receipt {
	return &router.Receipt{Epoch: g.Epoch, List: cluster.ShardsOf(r.Groups.Meta(), g)}
}

// take moves the statements of the shards from their lists to the receipt. It reports whether each list
// has one.
func take(r *router.Receipt, lists [][]NotedHit) (complete bool) {
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
