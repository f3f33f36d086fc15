package shardfsm

import (
	"bytes"
	"flag"
	"testing"

	"facet/internal/must"
	"facet/raftfsm"

	"github.com/google/go-cmp/cmp"

	"facet/engine/score"
	"facet/internal/id"
	"facet/raftfsm/fsmtest"
	"facet/raftfsm/operation"
	"facet/shard"
	"facet/shard/kernel"
	"facet/shard/segment"
)

var _ = flag.Bool("rewrite", false, "write testdata anew")

// once returns the index 1 for each command.
func once(int) uint64 { return 1 }

// keepsBytes applies commands to m. It compares their bytes, the answers and the snapshot with a
// file of testdata, and returns the machine that the snapshot makes.
func keepsBytes(t *testing.T, m *Machine, name string, index func(i int) uint64, list []any) *Machine {
	t.Helper()
	again := New(newTable(t), testArena)
	fsmtest.Transcript[*Machine]{File: name, Table: commands[:], Index: index}.Check(t, m, again, list)
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
	must.Do(t, err)
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
	must.Do(t, err)
	return a
}

func unregister(t testing.TB, m *Machine, c Unregister) UnregisterAnswer {
	t.Helper()
	a, err := UnregisterOp.Answer(m.Apply(1, UnregisterOp.Encode(c)))
	must.Do(t, err)
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
	if u := m.Shard().Usage(testGallery); u != (shard.Usage{Granted: 4, Active: 2, Deleted: 1}) {
		t.Fatalf("usage %+v", u)
	}
	return m
}

func TestStoredBytesStayWhatTheyWere(t *testing.T) {
	t.Parallel()
	keepsBytes(t, filled(t), "formats.txt", fsmtest.From(6), []any{testGrant, testRegister(2), testUnregister(1)})
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
	m := New(newTable(t), testArena)
	m.Apply(1, GrantOp.Encode(testGrant))
	m.Apply(2, RegisterOp.Encode(testRegister(9)))
	fsmtest.CheckDamage(t, m, fsmtest.Snapshot(t, scripted(t)))
}

func TestReadersKeepShardOverRestore(t *testing.T) {
	t.Parallel()
	good := fsmtest.Snapshot(t, filled(t))
	m := New(newTable(t), testArena)
	s := m.Shard()
	must.Do(t, m.Restore(bytes.NewReader(good)))
	if got := s.Usage(testGallery).Active; got != 2 {
		t.Errorf("a shard taken before sees %d active events, want 2", got)
	}
}

func TestUnknownCommandPanicsUnlessSkippable(t *testing.T) {
	t.Parallel()
	fsmtest.CheckUnreadable(t, filled(t), GrantOp.Encode(testGrant))
}

func TestRowsLieAtTheirCodes(t *testing.T) {
	t.Parallel()
	fsmtest.CheckCodes(t, commands[:], "## Codes of a shard")
}

func FuzzDecodeInvertsEncode(f *testing.F) {
	fsmtest.CheckEncoding(f, commands[:], append(script(), testGrant, testRegister(2), testUnregister(1)))
}

func FuzzRestoreFailsOrIsComplete(f *testing.F) {
	store, err := segment.Open(f.TempDir(), segment.Options{})
	must.Do(f, err)
	table := newTable(f)
	empty := func() raftfsm.Machine {
		m := New(table, testArena)
		m.Keep(store)
		return m
	}
	whole := func(m *Machine) []byte { return fsmtest.Snapshot(f, m) }
	fsmtest.CheckRestore(f, empty, magic, whole(filled(f)), whole(scripted(f)), whole(New(table, testArena)), storedSnapshot(f, scripted(f), store))
}

// storedSnapshot returns a snapshot that refers to segments.
func storedSnapshot(t testing.TB, m *Machine, store *segment.Store) []byte {
	t.Helper()
	m.Keep(store)
	return settled(t, m)
}

// settled returns a snapshot of a machine with a store.
func settled(t testing.TB, m *Machine) []byte {
	t.Helper()
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
