package shardfsm

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"facet/internal/id"
	"facet/raftfsm"
)

// counted counts the bytes written to the streams that its owner dialled.
type counted struct {
	loopback
	sent *atomic.Int64
}

func (c counted) Dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := c.loopback.Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	return countedConn{conn, c.sent}, nil
}

type countedConn struct {
	net.Conn
	sent *atomic.Int64
}

func (c countedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.sent.Add(int64(n))
	return n, err
}

// trio is a group whose first member leads. Others join and leave.
type trio struct {
	t       *testing.T
	dir     string
	sent    atomic.Int64
	address sync.Map // id.Member → string
	fatal   chan error
	files   atomic.Bool // whether operations and items of jobs may lie in files
}

func (c *trio) open(name id.Member) (*raftfsm.Group, *Machine) {
	c.t.Helper()
	g, m, err := c.try(name)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		if err := g.Close(); err != nil {
			c.t.Error(err)
		}
	})
	return g, m
}

// refused opens a member that must not open, and returns the error.
func (c *trio) refused(name id.Member) error {
	c.t.Helper()
	g, _, err := c.try(name)
	if err == nil {
		err = g.Close()
		c.t.Errorf("%s opens; closed: %v", name, err)
	}
	return err
}

func (c *trio) try(name id.Member) (*raftfsm.Group, *Machine, error) {
	c.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	c.address.Store(name, l.Addr().String())
	m := New(newTable(c.t), testArena)
	m.Batch(c.files.Load)
	g, err := raftfsm.Open(raftfsm.Config{
		Group: 7, Self: name, Dir: filepath.Join(c.dir, string(name)), Stream: counted{loopback{l}, &c.sent},
		Resolve: func(m id.Member) (string, error) {
			if a, ok := c.address.Load(m); ok {
				return a.(string), nil
			}
			return "", errors.New("no address")
		},
		Timing:       raftfsm.Timing{Heartbeat: 100 * time.Millisecond, Election: 100 * time.Millisecond, Lease: 100 * time.Millisecond},
		TrailingLogs: 4, SegmentBytes: 64 << 10,
		Fatal: func(err error) { c.fatal <- err },
	}, m)
	if err != nil {
		return nil, nil, errors.Join(err, ignoreClosed(l.Close()))
	}
	return g, m, nil
}

// ignoreClosed returns nil for an error that says that something is closed.
func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (c *trio) add(leader *raftfsm.Group, name id.Member) {
	c.t.Helper()
	_, index, err := leader.Servers()
	if err == nil {
		err = leader.AddNonvoter(c.t.Context(), name, index)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// proposersMost is less than the most commands that may wait in a group.
const proposersMost = 500

// enrol proposes n events of 700 bytes, numbered from first.
func (c *trio) enrol(g *raftfsm.Group, first, n int) {
	c.t.Helper()
	var work errgroup.Group
	work.SetLimit(proposersMost)
	for i := first; i < first+n; i++ {
		r := testRegister(0)
		r.Op, r.Subject, r.Event = id.Operation{7, byte(i >> 8), byte(i)}, id.Subject{UUID: id.UUID{7, byte(i >> 8), byte(i)}}, id.Event{UUID: id.UUID{8, byte(i >> 8), byte(i)}}
		r.Sealed = make([]byte, 700)
		r.Sealed[0], r.Sealed[1], r.Sealed[2] = 1, byte(i>>8), byte(i)
		work.Go(func() error {
			_, err := g.Propose(c.t.Context(), RegisterOp.Encode(r))
			return err
		})
	}
	if err := work.Wait(); err != nil {
		c.t.Error(err)
	}
}

// wait returns when a member has applied all entries that the leader has applied.
func (c *trio) wait(leader, member *raftfsm.Group) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 30*time.Second)
	defer cancel()
	if err := member.WaitApplied(ctx, leader.Applied()); err != nil {
		c.t.Fatal(err)
	}
}

func (c *trio) snapshot(g *raftfsm.Group) {
	c.t.Helper()
	if err := g.Snapshot(); err != nil {
		c.t.Fatal(err)
	}
}

func TestMemberIsSentOnlyMissingSegments(t *testing.T) {
	t.Parallel()
	c := &trio{t: t, dir: t.TempDir(), fatal: make(chan error, 4)}
	leader, state := c.open("member-a")
	if err := leader.Bootstrap([]raftfsm.Server{{Member: "member-a", Voter: true}}); err != nil {
		t.Fatal(err)
	}
	settle(t, leader)
	if _, err := leader.Propose(t.Context(), GrantOp.Encode(Grant{Gallery: testGallery, Generation: 1, Total: 5000})); err != nil {
		t.Fatal(err)
	}
	c.enrol(leader, 0, 1000)
	c.snapshot(leader)

	begin := c.sent.Load()
	c.add(leader, "member-b")
	member, copied := c.open("member-b")
	c.wait(leader, member)
	whole := c.sent.Load() - begin
	if copied.Digest() != state.Digest() || whole < 700_000 {
		t.Fatalf("%d bytes were sent; digest %x, want %x", whole, copied.Digest(), state.Digest())
	}
	checkSealed(t, copied, 1000)

	if err := member.Close(); err != nil {
		t.Fatal(err)
	}
	c.enrol(leader, 1000, 20)
	c.snapshot(leader)
	begin = c.sent.Load()
	member, copied = c.open("member-b")
	c.wait(leader, member)
	if less := c.sent.Load() - begin; copied.Digest() != state.Digest() || less > whole/5 {
		t.Errorf("%d bytes were sent after %d; digest %x, want %x", less, whole, copied.Digest(), state.Digest())
	}
	checkSealed(t, copied, 1020)
	select {
	case err := <-c.fatal:
		t.Error(err)
	default:
	}
}

// checkSealed reads the faces that enrol proposed.
func checkSealed(t *testing.T, m *Machine, n int) {
	t.Helper()
	for i := range n {
		sealed, ok := m.Shard().Sealed(testGallery, id.Subject{UUID: id.UUID{7, byte(i >> 8), byte(i)}}, id.Event{UUID: id.UUID{8, byte(i >> 8), byte(i)}}, 0)
		if !ok || len(sealed) != 700 || sealed[1] != byte(i>>8) || sealed[2] != byte(i) {
			t.Fatalf("event %d: %v, %d bytes", i, ok, len(sealed))
		}
	}
}

func TestDamagedSegmentTakesReplicaOut(t *testing.T) {
	t.Parallel()
	c := &trio{t: t, dir: t.TempDir(), fatal: make(chan error, 4)}
	g, _ := c.open("member-a")
	if err := g.Bootstrap([]raftfsm.Server{{Member: "member-a", Voter: true}}); err != nil {
		t.Fatal(err)
	}
	settle(t, g)
	if _, err := g.Propose(t.Context(), GrantOp.Encode(Grant{Gallery: testGallery, Generation: 1, Total: 5000})); err != nil {
		t.Fatal(err)
	}
	c.enrol(g, 0, 30)
	c.snapshot(g)
	names, err := filepath.Glob(filepath.Join(c.dir, "member-a", "segments", "*.seg"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	b, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	b[300] ^= 1 // in a sealed face
	if err := os.WriteFile(names[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	select { // it is read now and then
	case err := <-c.fatal:
		if name := filepath.Base(names[0]); !errors.Is(err, raftfsm.ErrCorrupt) || !strings.Contains(err.Error(), name[:64]) {
			t.Errorf("got %v, want ErrCorrupt of segment %s", err, name)
		}
	case <-time.After(20 * time.Second):
		t.Error("the damage was not found")
	}
	if g.Status().State != "Failed" {
		t.Errorf("the group is %s", g.Status().State)
	}
}

func TestSnapshotWritesOnlyChanges(t *testing.T) {
	t.Parallel()
	c := &trio{t: t, dir: t.TempDir(), fatal: make(chan error, 4)}
	g, _ := c.open("member-a")
	if err := g.Bootstrap([]raftfsm.Server{{Member: "member-a", Voter: true}}); err != nil {
		t.Fatal(err)
	}
	settle(t, g)
	if _, err := g.Propose(t.Context(), GrantOp.Encode(Grant{Gallery: testGallery, Generation: 1, Total: 5000})); err != nil {
		t.Fatal(err)
	}
	segments := func() (names map[string]int64) {
		t.Helper()
		list, err := os.ReadDir(filepath.Join(c.dir, "member-a", "segments"))
		if err != nil {
			t.Fatal(err)
		}
		names = make(map[string]int64)
		for _, e := range list {
			info, err := e.Info()
			if err != nil {
				t.Fatal(err)
			}
			names[e.Name()] = info.Size()
		}
		return names
	}
	c.enrol(g, 0, 2000)
	c.snapshot(g)
	before := segments()
	c.enrol(g, 2000, 10)
	gone := Unregister{Gallery: testGallery, Generation: 1, Op: id.Operation{1}, Time: testTime, Subject: id.Subject{UUID: id.UUID{7, 0, 9}}}
	if _, err := g.Propose(t.Context(), UnregisterOp.Encode(gone)); err != nil {
		t.Fatal(err)
	}
	c.snapshot(g)
	var all, fresh int64
	for name, size := range segments() {
		all += size
		if _, old := before[name]; !old {
			fresh += size
		}
		delete(before, name)
	}
	if len(before) != 0 || fresh == 0 || fresh > all/50 {
		t.Errorf("%d of %d bytes were written for a hundredth; files that went: %v", fresh, all, before)
	}
}
