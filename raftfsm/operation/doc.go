// Package operation remembers which writes a group has done, so that a retry has
// no second effect, and keeps the group's clock.
//
// It is a part of a state machine: its input is the commands' own times and
// operations, nothing else. It may import internal packages.
package operation
