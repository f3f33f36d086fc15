// Package command describes the commands of a replicated state machine.
//
// A machine has one table with a row for each command. An Op names a command for
// the caller who proposes it: its code, the type of the command and the type of the
// answer. The table is an array literal indexed by code, so a code given out twice
// does not compile. The package imports internal/codec only.
package command
