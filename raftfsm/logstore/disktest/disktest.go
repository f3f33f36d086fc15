// Package disktest opens the file of a log without fsync, for tests: where nothing
// stands or falls with a loss of power, as in virtual time, fsync only costs time.
package disktest

import (
	"path/filepath"

	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
)

// Open opens the log file of dir as logstore.OpenDisk does, but for fsync, the copy
// that replaces the file, and damaged pages: they make it panic.
func Open(dir string) (*raftboltdb.BoltStore, error) {
	return raftboltdb.New(raftboltdb.Options{
		Path: filepath.Join(dir, "raft.db"), NoSync: true, MsgpackUseNewTimeFormat: true,
	})
}
