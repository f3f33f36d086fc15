package snapshots

import (
	"fmt"
	"testing"

	"github.com/hashicorp/raft"

	"facet/internal/must"
)

func TestReconcileMakesLogAgree(t *testing.T) {
	t.Parallel()
	f := func(what string, first, last, term, index, snapshotTerm uint64, want string) {
		t.Helper()
		s, _ := openLog(t)
		for i := first; i <= last && first > 0; i++ {
			must.Do(t, s.StoreLog(&raft.Log{Index: i, Term: term, Type: raft.LogNoop}))
		}
		must.Do(t, reconcile(s, s.Pin, index, snapshotTerm))
		// The next step of raft, with TrailingLogs 0.
		if index < last {
			oldest, _ := s.FirstIndex()
			must.Do(t, s.DeleteRange(oldest, index))
		}
		got := ""
		for i := range last + index + 2 {
			var l raft.Log
			if s.GetLog(i, &l) == nil {
				got += fmt.Sprintf(" %d/%d", l.Index, l.Term)
			}
		}
		if got != want {
			t.Errorf("%s: got%s, want%s", what, got, want)
		}
	}
	f("an empty log", 0, 0, 0, 5, 2, " 5/2")
	f("an older log", 1, 3, 1, 5, 2, " 5/2")
	f("a log that ends there", 1, 5, 1, 5, 2, " 5/2")
	f("the same history", 1, 7, 2, 5, 2, " 5/2 6/2 7/2")
	f("another history", 1, 7, 1, 5, 2, " 5/2 6/1 7/1")
	f("a newer log", 6, 7, 2, 5, 2, " 6/2 7/2")
}
