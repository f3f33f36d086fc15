package shardfsm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"facet/internal/id"
	"facet/internal/must"
	"facet/raftfsm"
)

// trio is a group whose first member leads. Others join and leave.
type trio struct {
	t   *testing.T
	dir string
	network
	fatal chan error
}

// inTrio runs a test in a bubble with a trio that has one member so far, which leads, and slots in
// its gallery. It keeps operations and items in files.
func inTrio(t *testing.T, do func(c *trio, leader *raftfsm.Group, state *Machine)) {
	t.Helper()
	bubble(t, func(t *testing.T) {
		c := &trio{t: t, dir: t.TempDir(), fatal: make(chan error, 4)}
		t.Cleanup(func() {
			select {
			case err := <-c.fatal:
				t.Error(err)
			default:
			}
		})
		g, m := c.open("member-a")
		must.Do(t, g.Bootstrap([]raftfsm.Server{{Member: "member-a", Voter: true}}))
		settle(t, g)
		c.propose(g, Grant{Gallery: testGallery, Generation: 1, Total: 5000})
		do(c, g, m)
	})
}

func (c *trio) propose(g *raftfsm.Group, list ...any) {
	c.t.Helper()
	for _, cmd := range list {
		if _, err := g.Propose(c.t.Context(), encode(cmd)); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *trio) open(name id.Member) (*raftfsm.Group, *Machine) {
	c.t.Helper()
	g, m, err := c.try(name)
	must.Do(c.t, err)
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
	l := c.listen(name)
	m := New(newTable(c.t), testArena)
	g, err := raftfsm.Open(raftfsm.Config{
		Group: 7, Self: name, Dir: filepath.Join(c.dir, string(name)), Stream: l,
		Resolve:      func(m id.Member) (string, error) { return string(m), nil },
		TrailingLogs: 4, SegmentBytes: 64 << 10,
		Fatal: func(err error) { c.fatal <- err },
	}, m)
	if err != nil {
		return nil, nil, errors.Join(err, l.Close())
	}
	return g, m, nil
}

func (c *trio) add(leader *raftfsm.Group, name id.Member) {
	c.t.Helper()
	_, index, err := leader.Servers()
	if err == nil {
		err = leader.AddNonvoter(c.t.Context(), name, index)
	}
	must.Do(c.t, err)
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
	must.Do(c.t, member.WaitApplied(ctx, leader.Applied()))
}

func (c *trio) snapshot(g *raftfsm.Group) {
	c.t.Helper()
	must.Do(c.t, g.Snapshot())
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
	inTrio(t, func(c *trio, g *raftfsm.Group, _ *Machine) {
		c.enrol(g, 0, 30)
		c.snapshot(g)
		path := c.fileOf("member-a", 0)
		harm(c.t, path, flipped)
		err := <-c.fatal // it is read now and then
		if name := filepath.Base(path); !errors.Is(err, raftfsm.ErrCorrupt) || !strings.Contains(err.Error(), name[:64]) {
			c.t.Errorf("got %v, want ErrCorrupt of segment %s", err, name)
		}
		if g.Status().State != "Failed" {
			c.t.Errorf("the group is %s", g.Status().State)
		}
	})
}

// harm changes a file, and returns its size before.
func harm(t *testing.T, path string, do func(path string, b []byte) error) int64 {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = do(path, b)
	}
	must.Do(t, err)
	return int64(len(b))
}

// flipped is a harm: one bit, in a sealed face or a record.
func flipped(path string, b []byte) error {
	b[300] ^= 1
	return os.WriteFile(path, b, 0o600)
}

func TestSnapshotWritesOnlyChanges(t *testing.T) {
	inTrio(t, func(c *trio, g *raftfsm.Group, _ *Machine) {
		c.enrol(g, 0, 2000)
		c.job(g, jobOf(7, 1), 1000)
		c.snapshot(g)
		_, before := c.sizes("member-a")
		c.enrol(g, 2000, 10)
		c.propose(g, Unregister{Gallery: testGallery, Generation: 1, Op: id.Operation{1}, Time: testTime, Subject: id.Subject{UUID: id.UUID{7, 0, 9}}})
		c.job(g, jobOf(7, 2), 10)
		c.snapshot(g)
		state, after := c.sizes("member-a")
		var all, fresh int64
		for name, size := range after {
			if all += size; before[name] == 0 {
				fresh += size
			}
		}
		if state > all/100 || fresh == 0 || fresh > all/20 {
			c.t.Errorf("%d and %d bytes were written after %d for a hundredth more", state, fresh, all)
		}
	})
}
