package searches

import (
	"slices"
	"testing"

	"facet/internal/id"
	"facet/router"
	"facet/shard"
	"facet/shard/scan"
)

func TestReceiptIsTakenFromHits(t *testing.T) {
	t.Parallel()
	hit := NotedHit{Hit: shard.Hit{Event: id.Event{UUID: id.UUID{1}}, Score: 9000}}
	lists := [][]NotedHit{
		withReceipt([]NotedHit{hit}, 3, &scan.Coverage{Index: 7, Active: 5, Searched: 4, LeftOut: 1}),
		withFloor(withReceipt(nil, 5, &scan.Coverage{Index: 9}), scan.NewFloor(1)),
	}
	var r router.Receipt
	if !take(&r, lists) {
		t.Fatal("the receipt is not complete")
	}
	if want := []router.ShardReceipt{{Shard: 3, Index: 7, Active: 5, Searched: 4, LeftOut: 1}, {Shard: 5, Index: 9, Active: 0, Searched: 0, LeftOut: 0}}; !slices.Equal(r.Shards, want) {
		t.Errorf("got %v, want %v", r.Shards, want)
	}
	if len(lists[0]) != 1 || lists[0][0].Event != hit.Event || len(lists[1]) != 0 {
		t.Errorf("lists %v", lists)
	}
}

// An older node ignores the wish, and a search that was given up has no hits. Neither gets a receipt.
func TestMissingStatementLeavesNoReceipt(t *testing.T) {
	t.Parallel()
	stated := withReceipt(nil, 3, &scan.Coverage{})
	for _, older := range [][]NotedHit{nil, {{Hit: shard.Hit{Score: 9000}}}, {{Floor: 8000}}} {
		var r router.Receipt
		if take(&r, [][]NotedHit{slices.Clone(stated), older}) {
			t.Errorf("a shard that answers %v: the receipt is complete", older)
		}
	}
}
