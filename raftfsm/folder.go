package raftfsm

import (
	"fmt"

	"facet/raftfsm/logstore"
)

// Prepare makes the folder of a member that never ran, with an empty log in it. It does
// nothing where there is a log. Once it has returned the folder outlives a loss of
// power; what notes down that the member exists does so then, before the member is
// opened with Config.Prepared: from its opening on it may vote, and what it said must
// not be said twice.
func Prepare(dir string) error {
	if err := logstore.Prepare(dir); err != nil {
		return fmt.Errorf("prepare a group's folder: %w", err)
	}
	return nil
}
