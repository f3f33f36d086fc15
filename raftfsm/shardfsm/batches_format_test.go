package shardfsm

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"facet/internal/must"
	"facet/raftfsm/fsmtest"

	"github.com/google/go-cmp/cmp"

	"facet/shard/job"
	"facet/shard/segment"
)

// TestBatchedSnapshotMatchesFormat compares a snapshot and its files with those that the
// first software of the level wrote, and restores the old ones. All software of one level
// reads the same directories, so changed bytes need a new level (docs/formats/commands.md)
// and a further file in testdata.
func TestBatchedSnapshotMatchesFormat(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := batching(t, dir)
	m.Apply(1, GrantOp.Encode(testGrant))
	for n := range byte(3) {
		m.Apply(2+uint64(n), RegisterOp.Encode(testRegister(n)))
	}
	m.Apply(5, UnregisterOp.Encode(testUnregister(1)))
	for i, c := range jobCommands(jobOf(1, 1))[:4] {
		m.Apply(6+uint64(i), encode(c))
	}
	got, state := storedText(t, m, dir)
	if diff := cmp.Diff(fsmtest.Kept(t, "snapshot.txt", got), got); diff != "" {
		t.Errorf("snapshots have another form than at their level; docs/formats/commands.md says what that takes (-want +got):\n%s", diff)
	}

	copied := t.TempDir()
	must.Do(t, os.CopyFS(copied, os.DirFS(dir)))
	again := batching(t, copied)
	if err := again.Restore(bytes.NewReader(state)); err != nil || again.Digest() != m.Digest() {
		t.Fatalf("what was stored is read as another state: %x, want %x, %v", again.Digest(), m.Digest(), err)
	}
	for n := range byte(3) {
		if a := register(t, again, testRegister(n)); a.Status != Replayed {
			t.Errorf("registration %d, again: %v, want %v", n, a.Status, Replayed)
		}
	}
	page, _, err := again.Jobs().Page(job.Name(jobOf(1, 1)), 0, 9)
	if err != nil || len(page) != 2 || !bytes.Equal(page[0].Sealed, []byte{1}) || page[1].Result == nil {
		t.Errorf("the restored job's page is %v, %v", page, err)
	}
}

// batching returns a machine that keeps events, operations and items in files of a folder.
func batching(t *testing.T, dir string) *Machine {
	t.Helper()
	store, err := segment.Open(dir, segment.Options{})
	must.Do(t, err)
	m := New(newTable(t), testArena)
	t.Cleanup(m.Shard().Close)
	m.Keep(store)
	return m
}

// storedText makes a snapshot, and returns a line with name and bytes for the state and for
// each of its files, and the state.
func storedText(t *testing.T, m *Machine, dir string) (text string, state []byte) {
	t.Helper()
	state = settled(t, m)
	for _, code := range []byte{18, 19, 34, 35} { // records that refer to files
		if codes := recordsOf(t, state); !slices.Contains(codes, code) {
			t.Fatalf("the snapshot has no record %d: %v", code, codes)
		}
	}
	text = fmt.Sprintf("state %x\n", state)
	names, err := filepath.Glob(filepath.Join(dir, "*.seg"))
	if err != nil || len(names) != 4 {
		t.Fatalf("files %v, %v, want those of events, operations with a key and without, and items", names, err)
	}
	for _, name := range names { // sorted
		b, err := os.ReadFile(name)
		must.Do(t, err)
		text += fmt.Sprintf("%s %x\n", filepath.Base(name), b)
	}
	return text, state
}
