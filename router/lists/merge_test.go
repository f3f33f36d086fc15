package lists

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"facet/internal/id"
	"facet/router"
	"facet/router/clustertest"
	"facet/shard"
)

// TestWindowsAreCutsOfOneOrder reads a list page by page. Its entries often share
// their time.
func TestWindowsAreCutsOfOneOrder(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	lists := make([]shardList, 3)
	n := 0
	for i := range lists {
		lists[i].shard = id.Shard(i + 1)
		at := int64(0)
		for range 30 {
			at += int64(random.IntN(2))
			lists[i].Entries = append(lists[i].Entries, shard.Entry{Event: clustertest.Event(n), Time: at})
			n++
		}
	}
	whole, _ := window(lists, 1000, 0, 1000, router.Ascending)
	if len(whole) != n {
		t.Fatalf("got %d entries, want %d", len(whole), n)
	}
	var pages []placed
	for start := 0; start < n; start += 7 {
		page, _ := window(lists, 1000, start, 7, router.Ascending)
		pages = append(pages, page...)
	}
	if diff := cmp.Diff(fmt.Sprint(whole), fmt.Sprint(pages)); diff != "" {
		t.Error(diff)
	}
}
