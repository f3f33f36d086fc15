// Package operation remembers the writes that a group has done, so that a retry has no
// second effect, and keeps the group's clock.
//
// It is part of a state machine: its only input is the times and operations of commands.
// Outcomes may lie in files of shard/segment. Which files these are is not part of the
// state. It may import shard/segment and internal packages.
package operation
