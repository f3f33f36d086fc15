package health

import (
	"errors"
	"fmt"
)

var (
	// ErrClosed is returned when the group was closed, or took itself out.
	ErrClosed = errors.New("raftfsm: group is closed")

	// ErrCorrupt is returned when bytes read from disk or received from a member do not
	// have the checksum they were written with.
	ErrCorrupt = errors.New("raftfsm: checksum does not match")
)

// RewriteError is returned when another member sends entries in place of entries that this
// member knows to be committed. Other members have then lost entries that they had
// acknowledged.
type RewriteError struct {
	// From is the first entry that was seen to differ. If the other members had only a
	// snapshot, earlier entries may differ too.
	From uint64 `json:"from"`
	// Commit is the last entry that this member knows to be committed.
	Commit uint64 `json:"commit"`
}

// Error returns a message that names the entries.
func (e *RewriteError) Error() string {
	return fmt.Sprintf("raftfsm: history rewritten: other members replace entries from %d on, and this member knows that entries up to %d are committed", e.From, e.Commit)
}
