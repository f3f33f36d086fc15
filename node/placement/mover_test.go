package placement

import (
	"context"
	"log/slog"
	"net"
	"testing"

	"facet/internal/id"
	"facet/internal/must"
	"facet/raftfsm"
	"facet/raftfsm/metafsm"
)

type loopback struct{ net.Listener }

func (loopback) Dial(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", address)
}

func TestFailedTransferIsRememberedUntilOneSucceeds(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	group, err := raftfsm.Open(raftfsm.Config{
		Group: 1, Self: "a", Dir: t.TempDir(), Stream: loopback{l}, Log: slog.New(slog.DiscardHandler),
		Resolve: func(id.Member) (string, error) { return l.Addr().String(), nil },
	}, metafsm.New())
	must.Do(t, err)
	defer func() {
		if err := group.Close(); err != nil {
			t.Error(err)
		}
	}()
	p := New(Config{Self: "a", Log: slog.New(slog.DiscardHandler)})
	f := func(to, want id.Member) {
		t.Helper()
		if err := p.carryOut(t.Context(), 1, group, moveStep{moveTransfer, to}, 0); (err != nil) != (want != "") {
			t.Fatalf("transfer to %s: %v", to, err)
		}
		m, _, err := p.moving(t.Context(), 1, metafsm.ShardVoters{Shard: 1}, group)
		if err != nil || m.refused != want {
			t.Errorf("after the transfer to %s: refused %q, %v; want %q", to, m.refused, err, want)
		}
	}
	f("b", "b") // it is no member
	f("c", "c")
	f("a", "")
}
