package shardfsm

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"facet/internal/id"
	"facet/internal/must"
	"facet/raftfsm"
)

// bubble runs a test in virtual time, beside other tests. At its end the timers of closed
// members run out.
func bubble(t *testing.T, do func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Minute) })
		do(t)
	})
}

// network is one in memory. Each stream is a net.Pipe.
type network struct {
	listeners sync.Map     // of names to *streams
	sent      atomic.Int64 // bytes written to streams by those that dialled them
}

// streams is the StreamLayer of one member.
type streams struct {
	*network
	name  string
	queue chan net.Conn
	done  chan struct{}
	end   func()
}

func (n *network) listen(name id.Member) *streams {
	done := make(chan struct{})
	s := &streams{n, string(name), make(chan net.Conn), done, sync.OnceFunc(func() { close(done) })}
	n.listeners.Store(s.name, s)
	return s
}

func (s *streams) Accept() (net.Conn, error) {
	select {
	case c := <-s.queue:
		return c, nil
	case <-s.done:
		return nil, net.ErrClosed
	}
}

func (s *streams) Close() error {
	s.end()
	return nil
}

func (s *streams) Addr() net.Addr { return &net.UnixAddr{Name: s.name} }

func (s *streams) Dial(ctx context.Context, address string) (net.Conn, error) {
	to, known := s.listeners.Load(address)
	if !known {
		return nil, errors.New("unreachable")
	}
	here, there := net.Pipe()
	select {
	case to.(*streams).queue <- there:
		return counted{here, &s.sent}, nil
	case <-to.(*streams).done:
		return nil, errors.New("refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type counted struct {
	net.Conn
	sent *atomic.Int64
}

func (c counted) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.sent.Add(int64(n))
	return n, err
}

// openGroup opens the only member of a group on its folder.
func openGroup(t testing.TB, dir string, m *Machine, tune func(*raftfsm.Config)) *raftfsm.Group {
	t.Helper()
	cfg := raftfsm.Config{
		Group: 7, Self: "member-a", Dir: dir, Stream: new(network).listen("member-a"),
		Resolve: func(id.Member) (string, error) { return "member-a", nil },
		Timing:  raftfsm.Timing{Heartbeat: 50 * time.Millisecond, Election: 50 * time.Millisecond, Lease: 50 * time.Millisecond},
		Fatal:   func(err error) { t.Error(err) },
	}
	if tune != nil {
		tune(&cfg)
	}
	g, err := raftfsm.Open(cfg, m)
	must.Do(t, err)
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	must.Do(t, g.Bootstrap([]raftfsm.Server{{Member: "member-a", Voter: true}}))
	return g
}

// settle waits until the member leads and has applied its log.
func settle(t testing.TB, g *raftfsm.Group) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		index, err := g.ReadIndex(ctx)
		if err == nil {
			err = g.WaitApplied(ctx, index)
		}
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestCrashLeftoversAreRemovedAtStart(t *testing.T) { bubble(t, removeLeftovers) }

func removeLeftovers(t *testing.T) {
	dir := t.TempDir()
	m := New(newTable(t), testArena)
	g := openGroup(t, dir, m, nil)
	settle(t, g)
	for _, c := range []any{testGrant, testRegister(0), testRegister(2)} {
		if _, err := g.Propose(t.Context(), encode(c)); err != nil {
			t.Fatal(err)
		}
	}
	must.Do(t, g.Snapshot())
	want := m.Digest()
	must.Do(t, g.Close())
	files := func() []string {
		t.Helper()
		names, err := filepath.Glob(filepath.Join(dir, "segments", "*"))
		must.Do(t, err)
		return names
	}
	whole := files()
	if len(whole) != 2 {
		t.Fatalf("segments %v, want those of events and of operations", whole)
	}
	b, err := os.ReadFile(whole[0])
	must.Do(t, err)
	// A segment of an unfinished snapshot, and parts of a segment, of a copy of the log
	// and of a snapshot.
	for name, b := range map[string][]byte{
		filepath.Join("segments", strings.Repeat("0a", 32)+".seg"): b,
		filepath.Join("segments", "17.tmp"):                        b[:100],
		"raft.db.tmp":                                              b[:50],
		filepath.Join("snapshots", "9-9-9.tmp", "state.bin"):       b,
	} {
		path := filepath.Join(dir, name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must.Do(t, os.WriteFile(path, b, 0o600))
	}
	m = New(newTable(t), testArena)
	g = openGroup(t, dir, m, nil)
	settle(t, g)
	if m.Digest() != want {
		t.Error("the state differs")
	}
	for _, name := range []string{"raft.db.tmp", filepath.Join("snapshots", "9-9-9.tmp")} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s stays", name)
		}
	}
	if got := files(); !slices.Equal(got, whole) {
		t.Errorf("segments %v, want %v", got, whole)
	}
}
