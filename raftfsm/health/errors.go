package health

import "errors"

var (
	// ErrClosed is returned when the group was closed, or took itself out.
	ErrClosed = errors.New("raftfsm: group is closed")

	// ErrCorrupt is returned when bytes read from disk or received from a member do not
	// have the checksum they were written with.
	ErrCorrupt = errors.New("raftfsm: checksum does not match")
)
