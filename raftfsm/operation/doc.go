// Package operation remembers which writes a group has done, so that a retry has
// no second effect, and keeps the group's clock.
//
// It is a part of a state machine: its input is the commands' own times and
// operations, nothing else. In which files of
// shard/segment its outcomes lie is no part of the state. It may import shard/segment
// and internal packages.
package operation
