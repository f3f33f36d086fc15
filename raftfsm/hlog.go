package raftfsm

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// raftEvents are the messages of raft that report a change. Others come many times a second
// while a member is away, and are logged at debug level.
//
// Elections, handed over leaderships and new members are normal, also at a first start:
// they are no warnings. facet_group_leaderships_total counts elections, for an alert.
var raftEvents = map[string]slog.Level{
	"entering leader state":                               slog.LevelInfo,
	"entering follower state":                             slog.LevelInfo,
	"updating configuration":                              slog.LevelInfo,
	"Installed remote snapshot":                           slog.LevelInfo,
	"removed ourself, transitioning to follower":          slog.LevelInfo,
	"heartbeat timeout reached, starting election":        slog.LevelInfo,
	"not part of stable configuration, aborting election": slog.LevelInfo,
	"clearing log suffix":                                 slog.LevelInfo,
	"peer has newer term, stopping replication":           slog.LevelInfo,
	"newer term discovered, fallback to follower":         slog.LevelInfo,
	"failed to contact quorum of nodes, stepping down":    slog.LevelWarn,
	"failed to take snapshot":                             slog.LevelWarn,
	"failed to install snapshot":                          slog.LevelWarn,
	"failed to send snapshot to":                          slog.LevelWarn,
}

// bridge is an hclog sink that writes to slog.
type bridge struct{ log *slog.Logger }

// newBridge returns the logger that raft writes to.
func newBridge(log *slog.Logger) hclog.Logger {
	l := hclog.NewInterceptLogger(&hclog.LoggerOptions{Level: hclog.Off, Output: io.Discard})
	l.RegisterSink(bridge{log})
	return l
}

// Accept writes one message.
func (b bridge) Accept(_ string, _ hclog.Level, msg string, args ...any) {
	level, ok := raftEvents[msg]
	if !ok {
		level = slog.LevelDebug
	}
	if !b.log.Enabled(context.Background(), level) {
		return
	}
	for i, a := range args {
		switch v := a.(type) {
		case hclog.Format: // a format and its operands, left to the sink
			if len(v) > 0 {
				args[i] = fmt.Sprintf(fmt.Sprint(v[0]), v[1:]...)
			}
		case fmt.Stringer: // else slog would print raft's insides
			args[i] = v.String()
		}
	}
	b.log.Log(context.Background(), level, "raft", append([]any{"event", msg}, args...)...)
}
