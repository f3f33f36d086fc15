package shardfsm

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"facet/internal/id"
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

func newFiling(t testing.TB, r *rand.Rand, store *segment.Store) filing {
	t.Helper()
	m := New(newTable(t), testArena)
	m.Keep(store)
	m.Batch(func() bool { return r.IntN(5) > 0 })
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

// jobsOf proposes one job of n items to a group and finishes half of them.
func jobsOf(t *testing.T, g *raftfsm.Group, name JobName, n uint32) {
	t.Helper()
	var items [][]byte
	var results []job.Result
	for i := range n {
		items = append(items, bytes.Repeat([]byte{byte(i), name.Batch.UUID[1]}, 40))
		if i%2 == 0 {
			results = append(results, job.Result{Index: i, Attempts: 1, Sealed: make([]byte, 100)})
		}
	}
	for _, c := range []any{
		BeginJob{Name: name, Total: n, Time: testTime},
		AddJob{Name: name, Items: items, Time: testTime},
		OpenJob{Name: name, Time: testTime},
		FinishJob{Name: name, Results: results, Time: testTime},
	} {
		if _, err := g.Propose(t.Context(), encode(c)); err != nil {
			t.Fatal(err)
		}
	}
}

// lead opens the first member of a trio that keeps operations and items in files, and grants
// slots to its gallery.
func (c *trio) lead() (*raftfsm.Group, *Machine) {
	c.t.Helper()
	c.files.Store(true)
	g, m := c.open("member-a")
	if err := g.Bootstrap([]raftfsm.Server{{Member: "member-a", Voter: true}}); err != nil {
		c.t.Fatal(err)
	}
	settle(c.t, g)
	if _, err := g.Propose(c.t.Context(), GrantOp.Encode(Grant{Gallery: testGallery, Generation: 1, Total: 5000})); err != nil {
		c.t.Fatal(err)
	}
	return g, m
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
	if err != nil {
		c.t.Fatal(err)
	}
	segments = make(map[string]int64)
	names, err := filepath.Glob(filepath.Join(c.dir, string(name), "segments", "*.seg"))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, path := range names {
		f, err := os.Stat(path)
		if err != nil {
			c.t.Fatal(err)
		}
		segments[path] = f.Size()
	}
	return info.Size(), segments
}

func TestSnapshotWritesOnlyNewBatches(t *testing.T) {
	t.Parallel()
	c := &trio{t: t, dir: t.TempDir(), fatal: make(chan error, 4)}
	g, _ := c.lead()
	c.enrol(g, 0, 2000)
	jobsOf(t, g, jobOf(7, 1), 1000)
	c.snapshot(g)
	_, before := c.sizes("member-a")
	c.enrol(g, 2000, 10)
	jobsOf(t, g, jobOf(7, 2), 10)
	c.snapshot(g)
	state, after := c.sizes("member-a")
	var all, fresh int64
	for name, size := range after {
		if all += size; before[name] == 0 {
			fresh += size
		}
	}
	if state > all/100 || fresh == 0 || fresh > all/20 {
		t.Errorf("%d and %d bytes were written after %d for a hundredth more", state, fresh, all)
	}
}

// TestOlderFormIsWrittenUntilLevel makes snapshots before and after the level of the new
// form. Machines below the level read the new form too.
func TestOlderFormIsWrittenUntilLevel(t *testing.T) {
	t.Parallel()
	store, err := segment.Open(t.TempDir(), segment.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var may atomic.Bool
	open := func() *Machine {
		m := New(newTable(t), testArena)
		m.Keep(store)
		m.Batch(may.Load)
		return m
	}
	m := open()
	m.Apply(1, GrantOp.Encode(testGrant))
	m.Apply(2, RegisterOp.Encode(testRegister(0)))
	for _, command := range jobCommands(jobOf(1, 1)) {
		m.Apply(3, encode(command))
	}
	want := m.Digest()
	for i, on := range []bool{false, true, true, false, true} {
		may.Store(on)
		f := m.freeze()
		files, err := f.Settle(segment.Share)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if _, err := f.WriteTo(&b); err != nil {
			t.Fatal(err)
		}
		if n := 1; !on && len(files) != n || on && len(files) != n+2 {
			t.Errorf("snapshot %d: %d files", i, len(files))
		}
		f.Adopt()
		err = store.Collect()
		if err != nil {
			t.Fatal(err)
		}
		codes := recordsOf(t, b.Bytes())
		for _, old := range []byte{16, 17, 32, 33} {
			if slices.Contains(codes, old) == on || slices.Contains(codes, map[byte]byte{16: 18, 17: 19, 32: 34, 33: 35}[old]) != on {
				t.Errorf("snapshot %d, in files %v: records %v", i, on, codes)
			}
		}
		may.Store(false)
		next := open()
		if err := next.Restore(&b); err != nil {
			t.Fatal(err)
		}
		f.Release()
		if next.Digest() != want || !next.Remembers(testRegister(0).Op) {
			t.Errorf("snapshot %d: the state differs", i)
		}
		m = next
	}
}

// recordsOf returns the codes of a snapshot's records.
func recordsOf(t *testing.T, b []byte) (codes []byte) {
	t.Helper()
	for code := range recordBodies(t, bytes.NewReader(b)) {
		codes = append(codes, code)
	}
	return codes
}

func TestMemberIsSentOnlyMissingBatches(t *testing.T) {
	t.Parallel()
	c := &trio{t: t, dir: t.TempDir(), fatal: make(chan error, 4)}
	leader, state := c.lead()
	jobsOf(t, leader, jobOf(7, 1), 1500)
	c.enrol(leader, 0, 200)
	c.snapshot(leader)
	begin := c.sent.Load()
	c.add(leader, "member-b")
	member, copied := c.open("member-b")
	c.wait(leader, member)
	whole := c.sent.Load() - begin
	if copied.Digest() != state.Digest() || copied.Operations() != 200 || whole < 200_000 {
		t.Fatalf("%d bytes were sent; %d operations, digest %x, want %x", whole, copied.Operations(), copied.Digest(), state.Digest())
	}
	if err := member.Close(); err != nil {
		t.Fatal(err)
	}
	c.enrol(leader, 1000, 20)
	jobsOf(t, leader, jobOf(7, 3), 10)
	c.snapshot(leader)
	begin = c.sent.Load()
	member, copied = c.open("member-b")
	c.wait(leader, member)
	if less := c.sent.Load() - begin; copied.Digest() != state.Digest() || less > whole/4 {
		t.Errorf("%d bytes were sent after %d; digest %x, want %x", less, whole, copied.Digest(), state.Digest())
	}
	c.snapshot(member) // of its own, on the leader's files
	if _, files := c.sizes("member-b"); len(files) < 3 {
		t.Errorf("files %v", files)
	}
	select {
	case err := <-c.fatal:
		t.Error(err)
	default:
	}
}

// fileOf returns the path of a member's file of operations or items.
func (c *trio) fileOf(name id.Member, code byte) string {
	c.t.Helper()
	_, files := c.sizes(name)
	for path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			c.t.Fatal(err)
		}
		if len(b) > 64 && (code == 17 && b[24] == 17 && b[25] == 1 || code == 33 && b[40] == 33 && b[41] == 1) {
			return path
		}
	}
	c.t.Fatalf("none of %v has records %d", files, code)
	return ""
}

// TestOnlyDamagedBatchFileIsSentAgain damages, cuts or removes a file of operations or items
// of a stopped member. The member finds the damage at the start.
func TestOnlyDamagedBatchFileIsSentAgain(t *testing.T) {
	t.Parallel()
	c := &trio{t: t, dir: t.TempDir(), fatal: make(chan error, 4)}
	leader, state := c.lead()
	c.enrol(leader, 0, 400)
	jobsOf(t, leader, jobOf(7, 1), 1000)
	c.snapshot(leader)
	c.add(leader, "member-b")
	member, _ := c.open("member-b")
	c.wait(leader, member)
	if err := member.Close(); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(c.dir, "member-b")
	for i, harm := range []struct {
		code byte
		do   func(path string, b []byte) error
	}{
		{17, func(path string, b []byte) error { b[100] ^= 1; return os.WriteFile(path, b, 0o600) }},
		{33, func(path string, b []byte) error { b[100] ^= 1; return os.WriteFile(path, b, 0o600) }},
		{17, func(path string, b []byte) error { return os.WriteFile(path, b[:len(b)/2], 0o600) }},
		{33, func(path string, _ []byte) error { return os.Remove(path) }},
	} {
		path := c.fileOf("member-b", harm.code)
		b, err := os.ReadFile(path)
		if err == nil {
			err = harm.do(path, b)
		}
		if err != nil {
			t.Fatal(err)
		}
		_, names := c.sizes("member-b")
		if err := c.refused("member-b"); !errors.Is(err, raftfsm.ErrCorrupt) && !errors.Is(err, segment.ErrCorrupt) {
			t.Fatalf("harm %d: the member opens: %v", i, err)
		}
		aside := filepath.Join(c.dir, "aside", string(rune('a'+i)))
		if err := errors.Join(os.MkdirAll(filepath.Dir(aside), 0o700), os.Rename(folder, aside)); err != nil {
			t.Fatal(err)
		}
		sound := len(names) - 1
		if harm.code == 33 && i == 3 {
			sound++ // it is not there at all
		}
		if n, err := raftfsm.SalvageSegments(aside, folder); err != nil || n != sound {
			t.Fatalf("harm %d: %d segments are sound, %v, want %d", i, n, err, sound)
		}
		begin := c.sent.Load()
		member, copied := c.open("member-b")
		c.wait(leader, member)
		if sent, size := c.sent.Load()-begin, int64(len(b)); copied.Digest() != state.Digest() || sent < size || sent > 2*size+20_000 {
			t.Errorf("harm %d: %d bytes were sent for %d; digest %x, want %x", i, sent, size, copied.Digest(), state.Digest())
		}
		if err := member.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRestartFromFilesRepeatsNothing proposes the same writes again after a restart.
func TestRestartFromFilesRepeatsNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var m *Machine
	start := func() *raftfsm.Group {
		m = New(newTable(t), testArena)
		m.Batch(func() bool { return true })
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
			if err != nil {
				t.Fatal(err)
			}
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
		if err := errors.Join(g.Snapshot(), g.Close()); err != nil {
			t.Fatal(err)
		}
		g = start()
	}
	if got := m.Shard().Slots().Stats().Active; got != n || m.Operations() != n {
		t.Errorf("%d events and %d operations, want %d", got, m.Operations(), n)
	}
}
