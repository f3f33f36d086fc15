package snapshots

import (
	"fmt"

	"github.com/hashicorp/raft"
)

// An installed snapshot at index K, term T replaces all entries of the log up to K.
// hashicorp/raft leaves the log as it is, and asks it for the term of entry K when the
// leader continues. If the log holds another entry there, or compaction has just removed
// it below a longer tail, raft refuses the append. The leader goes back and sends the
// snapshot again, for ever (hashicorp/raft #697). A stale prefix is worse: this member
// could send it to others as a leader.
//
//	before   …  K-1'  K'  K+1'  …      ' : of another history
//	after             K   K+1'  …      K has term T; the tail is cut by the next append

// reconcile makes the log agree with an installed snapshot at (index, term). Afterwards the
// log ends before index or has the entry (index, term). logs is the store that raft uses,
// with its cache. raft's main goroutine must be the caller or wait for the caller.
func reconcile(logs raft.LogStore, pin func(uint64), index, term uint64) error {
	first, err := logs.FirstIndex()
	if err != nil {
		return err
	}
	last, err := logs.LastIndex()
	if err != nil {
		return err
	}
	// A leader sends entry 1 without a check, so raft would keep the no-op below in its place.
	if first > index || index <= 1 {
		return nil
	}
	if first > 0 && last >= index {
		var at raft.Log
		if err := logs.GetLog(index, &at); err != nil {
			return fmt.Errorf("compare entry %d with a snapshot: %w", index, err)
		}
		if at.Term == term { // same index and term: same history
			if last > index {
				pin(index)
			}
			return nil
		}
	}
	// Delete the prefix first: after a crash before the entry is written, the next start
	// reconciles the log again.
	if end := min(last, index-1); first > 0 && first <= end {
		if err := logs.DeleteRange(first, end); err != nil {
			return err
		}
	}
	if err := logs.StoreLog(&raft.Log{Index: index, Term: term, Type: raft.LogNoop}); err != nil {
		return err
	}
	if last > index {
		pin(index)
	}
	return nil
}
