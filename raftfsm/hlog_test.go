package raftfsm

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
)

func TestRaftLogReachesSlog(t *testing.T) {
	t.Parallel()
	f := func(level slog.Level, msg, want string, args ...any) {
		t.Helper()
		var b bytes.Buffer
		log := newBridge(slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: level})))
		log.Error(msg, args...)
		if got := b.String(); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q in it", msg, got, want)
		}
	}
	f(slog.LevelInfo, "entering leader state", "level=INFO msg=raft event=\"entering leader state\" term=3", "term", 3)
	f(slog.LevelInfo, "failed to heartbeat to", "", "peer", "b")
	f(slog.LevelDebug, "failed to heartbeat to", "level=DEBUG")
	f(slog.LevelInfo, "updating configuration", "servers=\"[a b]\"", "servers", hclog.Fmt("%v", []string{"a", "b"}))
	f(slog.LevelInfo, "updating configuration", "wait=1s", "wait", time.Second)
	f(slog.LevelInfo, "failed to contact quorum of nodes, stepping down", "level=WARN")
	for _, normal := range []string{
		"heartbeat timeout reached, starting election", "not part of stable configuration, aborting election",
		"peer has newer term, stopping replication", "clearing log suffix",
	} {
		f(slog.LevelInfo, normal, "level=INFO")
	}
}
