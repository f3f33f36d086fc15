package shardfsm

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"facet/internal/id"
	"facet/internal/must"
	"facet/raftfsm"
	"facet/shard/job"
	"facet/shard/segment"
)

// filing is a machine whose snapshots refer to files of a store that replicas share.
type filing struct{ *Machine }

// filed is a frozen state that calls Settle before WriteTo, and Adopt afterwards.
type filed struct {
	raftfsm.Stored
	clean segment.Clean
}

func newFiling(t testing.TB, store *segment.Store) filing {
	t.Helper()
	m := New(newTable(t), testArena)
	m.Keep(store)
	return filing{m}
}

func (m filing) Freeze() (raftfsm.Frozen, error) {
	f, err := m.Machine.Freeze()
	if err != nil {
		return nil, err
	}
	return filed{f.(raftfsm.Stored), segment.Share}, nil
}

func (f filed) WriteTo(w io.Writer) (int64, error) {
	if _, err := f.Settle(f.clean); err != nil {
		return 0, err
	}
	n, err := f.Stored.WriteTo(w)
	f.Adopt()
	return n, err
}

// job proposes one job of n items to a group and finishes half of them.
func (c *trio) job(g *raftfsm.Group, name JobName, n uint32) {
	c.t.Helper()
	var items [][]byte
	var results []job.Result
	for i := range n {
		items = append(items, bytes.Repeat([]byte{byte(i), name.Batch.UUID[1]}, 40))
		if i%2 == 0 {
			results = append(results, job.Result{Index: i, Attempts: 1, Sealed: make([]byte, 100)})
		}
	}
	c.propose(g,
		BeginJob{Name: name, Total: n, Time: testTime},
		AddJob{Name: name, Items: items, Time: testTime},
		OpenJob{Name: name, Time: testTime},
		FinishJob{Name: name, Results: results, Time: testTime})
}

// sizes returns the size of the state in a member's newest snapshot, and the sizes of its
// segments by name.
func (c *trio) sizes(name id.Member) (state int64, segments map[string]int64) {
	c.t.Helper()
	list, err := filepath.Glob(filepath.Join(c.dir, string(name), "snapshots", "*", "state.bin"))
	if err != nil || len(list) != 1 {
		c.t.Fatal(list, err)
	}
	info, err := os.Stat(list[0])
	must.Do(c.t, err)
	segments = make(map[string]int64)
	names, err := filepath.Glob(filepath.Join(c.dir, string(name), "segments", "*.seg"))
	must.Do(c.t, err)
	for _, path := range names {
		f, err := os.Stat(path)
		must.Do(c.t, err)
		segments[path] = f.Size()
	}
	return info.Size(), segments
}

// recordsOf returns the codes of a snapshot's records.
func recordsOf(t *testing.T, b []byte) (codes []byte) {
	t.Helper()
	for code := range recordBodies(t, bytes.NewReader(b)) {
		codes = append(codes, code)
	}
	return codes
}

func TestMemberIsSentOnlyMissingFiles(t *testing.T) {
	inTrio(t, func(c *trio, leader *raftfsm.Group, state *Machine) {
		t := c.t
		// sent opens the second member, waits for it, and returns what it was sent.
		sent := func(events int) (*raftfsm.Group, int64) {
			begin := c.sent.Load()
			member, copied := c.open("member-b")
			c.wait(leader, member)
			if copied.Digest() != state.Digest() || copied.Operations() != events {
				t.Fatalf("%d operations, digest %x, want %x", copied.Operations(), copied.Digest(), state.Digest())
			}
			checkSealed(t, copied, events)
			return member, c.sent.Load() - begin
		}
		c.enrol(leader, 0, 1000)
		c.job(leader, jobOf(7, 1), 1500)
		c.snapshot(leader)
		c.add(leader, "member-b")
		member, whole := sent(1000)
		if whole < 900_000 {
			t.Errorf("%d bytes were sent", whole)
		}
		must.Do(t, member.Close())
		c.enrol(leader, 1000, 20)
		c.job(leader, jobOf(7, 3), 10)
		c.snapshot(leader)
		member, less := sent(1020)
		if less > whole/5 {
			t.Errorf("%d bytes were sent after %d", less, whole)
		}
		c.snapshot(member) // of its own, on the leader's files
		if _, files := c.sizes("member-b"); len(files) < 4 {
			t.Errorf("files %v", files)
		}
	})
}

// fileOf returns the path of a member's file of events (0), operations (17) or items (33).
func (c *trio) fileOf(name id.Member, code byte) string {
	c.t.Helper()
	_, files := c.sizes(name)
	for _, path := range slices.Sorted(maps.Keys(files)) {
		b, err := os.ReadFile(path)
		must.Do(c.t, err)
		operations, items := b[24] == 17 && b[25] == 1, b[40] == 33 && b[41] == 1
		if len(b) > 64 && (code == 17 && operations || code == 33 && items || code == 0 && !operations && !items) {
			return path
		}
	}
	c.t.Fatalf("none of %v has records %d", files, code)
	return ""
}

// TestOnlyDamagedFileIsSentAgain damages, cuts or removes a file of a stopped member. The member
// finds the damage of a file of operations or items at the start.
func TestOnlyDamagedFileIsSentAgain(t *testing.T) { inTrio(t, sendDamagedAgain) }

func sendDamagedAgain(c *trio, leader *raftfsm.Group, state *Machine) {
	t := c.t
	c.enrol(leader, 0, 1000)
	c.job(leader, jobOf(7, 1), 1000)
	c.snapshot(leader)
	c.add(leader, "member-b")
	member, _ := c.open("member-b")
	c.wait(leader, member)
	must.Do(t, member.Close())
	folder := filepath.Join(c.dir, "member-b")
	for i, damage := range []struct {
		code byte
		do   func(path string, b []byte) error
		gone int // files that are not there at all
	}{
		{0, flipped, 0},
		{17, flipped, 0},
		{33, flipped, 0},
		{17, func(path string, b []byte) error { return os.WriteFile(path, b[:len(b)/2], 0o600) }, 0},
		{33, func(path string, _ []byte) error { return os.Remove(path) }, 1},
	} {
		size := harm(t, c.fileOf("member-b", damage.code), damage.do)
		_, names := c.sizes("member-b")
		if damage.code != 0 {
			if err := c.refused("member-b"); !errors.Is(err, raftfsm.ErrCorrupt) && !errors.Is(err, segment.ErrCorrupt) {
				t.Fatalf("harm %d: the member opens: %v", i, err)
			}
		}
		aside := filepath.Join(c.dir, "aside", string(rune('a'+i)))
		must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(aside), 0o700), os.Rename(folder, aside)))
		if n, err := raftfsm.SalvageSegments(aside, folder); err != nil || n != len(names)-1+damage.gone {
			t.Fatalf("harm %d: %d segments of %d are sound, %v", i, n, len(names), err)
		}
		begin := c.sent.Load()
		member, copied := c.open("member-b")
		c.wait(leader, member)
		if sent := c.sent.Load() - begin; copied.Digest() != state.Digest() || sent < size || sent > 2*size+20_000 {
			t.Errorf("harm %d: %d bytes were sent for %d; digest %x, want %x", i, sent, size, copied.Digest(), state.Digest())
		}
		checkSealed(t, copied, 1000)
		must.Do(t, member.Close())
	}
}

// TestRestartFromFilesRepeatsNothing proposes the same writes again after a restart.
func TestRestartFromFilesRepeatsNothing(t *testing.T) { bubble(t, restartFromFiles) }

func restartFromFiles(t *testing.T) {
	dir := t.TempDir()
	var m *Machine
	start := func() *raftfsm.Group {
		m = New(newTable(t), testArena)
		g := openGroup(t, dir, m, nil)
		settle(t, g)
		return g
	}
	g := start()
	if _, err := g.Propose(t.Context(), GrantOp.Encode(Grant{Gallery: testGallery, Generation: 1, Total: 500})); err != nil {
		t.Fatal(err)
	}
	const n = 30
	for round := range 3 {
		for i := range byte(n) {
			a, err := g.Propose(t.Context(), RegisterOp.Encode(testRegister(i)))
			must.Do(t, err)
			want := Done
			if i < byte(round)*10 {
				want = Replayed
			}
			if r, err := RegisterOp.Answer(a); err != nil || r.Status != want {
				t.Fatalf("round %d, write %d: %v, %v, want %v", round, i, r.Status, err, want)
			}
			if i == byte(round)*10+9 {
				break
			}
		}
		must.Do(t, errors.Join(g.Snapshot(), g.Close()))
		g = start()
	}
	if got := m.Shard().Stats().Active; got != n || m.Operations() != n {
		t.Errorf("%d events and %d operations, want %d", got, m.Operations(), n)
	}
}
