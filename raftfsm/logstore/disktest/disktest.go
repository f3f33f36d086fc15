// Package disktest opens the file of a log without fsync. It is for tests that simulate no
// loss of power, where fsync only costs time.
package disktest

import (
	"path/filepath"

	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
)

// Open opens the log file of dir. Unlike logstore.OpenDisk, it never calls fsync, can't
// replace the file by a copy, and panics on damaged pages.
func Open(dir string) (*raftboltdb.BoltStore, error) {
	return raftboltdb.New(raftboltdb.Options{
		Path: filepath.Join(dir, "raft.db"), NoSync: true, MsgpackUseNewTimeFormat: true,
	})
}
