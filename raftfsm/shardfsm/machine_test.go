package shardfsm

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"facet/engine/score"
	"facet/internal/codec"
	"facet/internal/id"
	"facet/raftfsm/fsmtest"
	"facet/raftfsm/operation"
	"facet/shard"
	"facet/shard/kernel"
	"facet/shard/segment"
)

var rewrite = flag.Bool("rewrite", false, "write testdata anew")

// kept returns the text in a file of testdata. With -rewrite it writes got there first.
func kept(t *testing.T, name, got string) string {
	t.Helper()
	name = filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(name, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(want)
}

// matchesForms compares commands and answers, a line each, and the snapshot of m after them with a
// file of testdata. It returns a machine that has the file's snapshot.
func matchesForms(t *testing.T, m *Machine, name, lines string) *Machine {
	t.Helper()
	text := fmt.Sprintf("%ssnapshot %x\n", lines, snapshot(t, m))
	want := kept(t, name, text)
	if diff := cmp.Diff(want, text); diff != "" {
		t.Fatalf("formats (-want +got):\n%s", diff)
	}
	_, last, _ := strings.Cut(strings.TrimSpace(want), "snapshot ")
	stored, err := hex.DecodeString(last)
	if err != nil {
		t.Fatal(err)
	}
	again := New(newTable(t), testArena)
	if err := again.Restore(bytes.NewReader(stored)); err != nil || again.Digest() != m.Digest() {
		t.Fatalf("restore: %v", err)
	}
	return again
}

var (
	testGallery = id.Gallery{UUID: id.UUID{1}}
	testGrant   = Grant{Gallery: testGallery, Generation: 1, Total: 4}
	testArena   = kernel.NewArena(0)
)

func newTable(t testing.TB) *score.Table {
	t.Helper()
	table, err := score.NewTable([]score.Point{
		{Cosine: -1}, {Cosine: score.Same, Score: score.Max}, {Cosine: 1, Score: score.Max},
	})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func testRegister(n byte) Register {
	return Register{
		EventWrite: EventWrite{
			Gallery: testGallery, Generation: 1, Op: id.Operation{n}, Request: [16]byte{n, 1}, Keyed: n%2 == 1,
			Subject: id.Subject{UUID: id.UUID{2, n}}, Event: id.Event{UUID: id.UUID{3, n}}, Time: 1_700_000_000_000 + int64(n),
		},
		Tags: []uint32{7, 70_000}, Sealed: []byte{1, n}, Recycle: n == 2,
	}
}

func testUnregister(n byte) Unregister {
	return Unregister{
		Gallery: testGallery, Generation: 1, Op: id.Operation{n, 9}, Time: 1_700_000_001_000, Subject: id.Subject{UUID: id.UUID{2, n}},
	}
}

func register(t testing.TB, m *Machine, c Register) RegisterAnswer {
	t.Helper()
	a, err := RegisterOp.Answer(m.Apply(1, RegisterOp.Encode(c)))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func unregister(t testing.TB, m *Machine, c Unregister) UnregisterAnswer {
	t.Helper()
	a, err := UnregisterOp.Answer(m.Apply(1, UnregisterOp.Encode(c)))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// filled returns a machine with two active events, a deleted one and their operations.
func filled(t testing.TB) *Machine {
	t.Helper()
	m := New(newTable(t), testArena)
	m.Apply(1, GrantOp.Encode(testGrant))
	for n := range byte(3) {
		m.Apply(2+uint64(n), RegisterOp.Encode(testRegister(n)))
	}
	m.Apply(5, UnregisterOp.Encode(testUnregister(1)))
	if u := m.Shard().Slots().Usage(testGallery); u != (shard.Usage{Granted: 4, Active: 2, Deleted: 1}) {
		t.Fatalf("usage %+v", u)
	}
	return m
}

func snapshot(t testing.TB, m *Machine) []byte {
	t.Helper()
	f, err := m.Freeze()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Release()
	var b bytes.Buffer
	if _, err := f.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestStoredBytesStayWhatTheyWere(t *testing.T) {
	t.Parallel()
	m := filled(t)
	lines := []string{
		fmt.Sprintf("grant %x", GrantOp.Encode(testGrant)),
		fmt.Sprintf("grant answer %x", m.Apply(6, GrantOp.Encode(testGrant))),
		fmt.Sprintf("register %x", RegisterOp.Encode(testRegister(2))),
		fmt.Sprintf("register answer %x", m.Apply(7, RegisterOp.Encode(testRegister(2)))),
		fmt.Sprintf("unregister %x", UnregisterOp.Encode(testUnregister(1))),
		fmt.Sprintf("unregister answer %x", m.Apply(8, UnregisterOp.Encode(testUnregister(1)))),
		fmt.Sprintf("snapshot %x", snapshot(t, m)),
	}
	got := strings.Join(lines, "\n") + "\n"
	if diff := cmp.Diff(kept(t, "formats.txt", got), got); diff != "" {
		t.Fatalf("formats (-want +got):\n%s", diff)
	}
	// The stored bytes can still be read.
	stored, err := hex.DecodeString(strings.TrimPrefix(lines[len(lines)-1], "snapshot "))
	if err != nil {
		t.Fatal(err)
	}
	restored := New(newTable(t), testArena)
	if err := restored.Restore(bytes.NewReader(stored)); err != nil || restored.Digest() != m.Digest() {
		t.Fatalf("restore: %v", err)
	}
}

func TestRetryGetsFirstAnswer(t *testing.T) {
	t.Parallel()
	m := filled(t)
	c := testRegister(2)
	c.Time += 1000
	want := RegisterAnswer{Status: Replayed, Subject: c.Subject, Event: c.Event, Time: testRegister(2).Time, Sealed: c.Sealed}
	if diff := cmp.Diff(want, register(t, m, c)); diff != "" {
		t.Errorf("retry (-want +got):\n%s", diff)
	}
	gone := testRegister(1)
	want = RegisterAnswer{Status: Replayed, Subject: gone.Subject, Event: gone.Event, Time: gone.Time}
	if diff := cmp.Diff(want, register(t, m, gone)); diff != "" {
		t.Errorf("retry of an event that was removed since (-want +got):\n%s", diff)
	}
	c.Request[0]++
	if got := register(t, m, c); got.Status != Conflict {
		t.Errorf("another request: %v", got.Status)
	}
	u := testUnregister(2)
	u.Op = c.Op
	if got := unregister(t, m, u); got.Status != Conflict {
		t.Errorf("unregister with a registration's operation: %v", got.Status)
	}
}

func TestForgottenRetryMakesNoSecondSubject(t *testing.T) {
	t.Parallel()
	m := filled(t)
	c := testRegister(2) // not keyed
	c.Time += 11 * 60_000
	if got := register(t, m, c); got.Status != Conflict {
		t.Errorf("got %v, want a conflict", got.Status)
	}
}

func TestExcessOperationsAreRefused(t *testing.T) {
	t.Parallel()
	m := newMachine(newTable(t), testArena, operation.Limits{Plain: 1, Keyed: 1})
	m.Apply(1, GrantOp.Encode(testGrant))
	for n, want := range []Status{Done, Done, OpsFull, OpsFull} { // even: plain, odd: keyed
		if got := register(t, m, testRegister(byte(n))); got.Status != want {
			t.Errorf("registration %d: got %v, want %v", n, got.Status, want)
		}
	}
	if got := unregister(t, m, testUnregister(0)); got.Status != OpsFull {
		t.Errorf("unregister: %v", got.Status)
	}
	late := testRegister(2)
	late.Time += 11 * 60_000
	if got := register(t, m, late); got.Status != Done {
		t.Errorf("eleven minutes later: %v", got.Status)
	}
	if got := m.Operations(); got != 2 {
		t.Errorf("%d operations are remembered, want the keyed one and the last", got)
	}
}

func TestRefusedRegistrationIsNotRemembered(t *testing.T) {
	t.Parallel()
	m := New(newTable(t), testArena)
	c := testRegister(0)
	if got := register(t, m, c); got.Status != NeedSlots {
		t.Fatalf("without a grant: %v", got.Status)
	}
	m.Apply(2, GrantOp.Encode(testGrant))
	if got := register(t, m, c); got.Status != Done {
		t.Fatalf("after the grant: %v", got.Status)
	}
}

func TestDamagedSnapshotChangesNothing(t *testing.T) {
	t.Parallel()
	good := snapshot(t, scripted(t))
	m := New(newTable(t), testArena)
	m.Apply(1, GrantOp.Encode(testGrant))
	m.Apply(2, RegisterOp.Encode(testRegister(9)))
	before := m.Digest()
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 4
		if err := m.Restore(bytes.NewReader(bad)); err == nil {
			t.Fatalf("byte %d of %d changed: restored", i, len(good))
		}
		if err := m.Restore(bytes.NewReader(good[:i])); !errors.Is(err, codec.ErrCorrupt) {
			t.Fatalf("cut to %d of %d bytes: %v", i, len(good), err)
		}
	}
	if m.Digest() != before {
		t.Error("a refused snapshot changed the state")
	}
}

func TestReadersKeepShardOverRestore(t *testing.T) {
	t.Parallel()
	good := snapshot(t, filled(t))
	m := New(newTable(t), testArena)
	s := m.Shard()
	if err := m.Restore(bytes.NewReader(good)); err != nil {
		t.Fatal(err)
	}
	if got := s.Slots().Usage(testGallery).Active; got != 2 {
		t.Errorf("a shard taken before sees %d active events, want 2", got)
	}
}

// applyPanics reports whether Apply panics.
func applyPanics(m *Machine, cmd []byte) (panics bool) {
	defer func() { panics = recover() != nil }()
	m.Apply(9, cmd)
	return false
}

func TestUnknownCommandPanicsUnlessSkippable(t *testing.T) {
	t.Parallel()
	m := filled(t)
	before := m.Digest()
	f := func(name string, cmd []byte, want bool) {
		t.Helper()
		if got := applyPanics(m, cmd); got != want {
			t.Errorf("%s: panics %v, want %v", name, got, want)
		}
	}
	f("empty", nil, false)
	f("skippable", []byte{codec.Skippable | 5, 1, 0xff}, false)
	f("unknown", []byte{0x3f, 1, 0xa0}, true)
	f("a later version", append([]byte{1, 2}, GrantOp.Encode(testGrant)[2:]...), true)
	f("an answer", m.Apply(9, GrantOp.Encode(testGrant)), true)
	f("cut", GrantOp.Encode(testGrant)[:5], true)
	if m.Digest() != before {
		t.Error("an unreadable command changed the state")
	}
}

func TestRowsLieAtTheirCodes(t *testing.T) {
	t.Parallel()
	fsmtest.CheckCodes(t, commands[:])
}

func FuzzDecodeInvertsEncode(f *testing.F) {
	f.Add(GrantOp.Encode(testGrant))
	f.Add(RegisterOp.Encode(testRegister(2)))
	f.Add(UnregisterOp.Encode(testUnregister(1)))
	for _, c := range script() {
		f.Add(encode(c))
	}
	f.Add([]byte{0x80, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := fsmtest.Decode(commands[:], b)
		if err != nil {
			return
		}
		first := encode(c)
		again, err := fsmtest.Decode(commands[:], first)
		if err != nil || !bytes.Equal(encode(again), first) {
			t.Fatalf("%x is encoded as %x, then %v", b, first, err)
		}
	})
}

func FuzzRestoreFailsOrIsComplete(f *testing.F) {
	f.Add(snapshot(f, filled(f)))
	f.Add(snapshot(f, scripted(f)))
	f.Add(snapshot(f, New(newTable(f), testArena)))
	store, err := segment.Open(f.TempDir(), segment.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(storedSnapshot(f, scripted(f), store))
	table := newTable(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		// Reframe repairs the frame, so that Restore reads the records behind it.
		for _, b := range [][]byte{b, fsmtest.Reframe(b, magic)} {
			m := New(table, testArena)
			m.Keep(store)
			empty := m.Digest()
			if err := m.Restore(bytes.NewReader(b)); err != nil {
				if m.Digest() != empty {
					t.Fatalf("a refused snapshot changed the state: %v", err)
				}
				continue
			}
			again := New(table, testArena)
			if err := again.Restore(bytes.NewReader(snapshot(t, m))); err != nil || again.Digest() != m.Digest() {
				t.Fatalf("the restored state does not survive a snapshot: %v", err)
			}
		}
	})
}

// storedSnapshot returns a snapshot that refers to segments.
func storedSnapshot(t testing.TB, m *Machine, store *segment.Store) []byte {
	t.Helper()
	m.Keep(store)
	f := m.freeze()
	defer f.Release()
	if _, err := f.Settle(segment.Share); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := f.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
