package shardfsm

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// keepsBytes applies commands to m from an index on. It compares their bytes, the answers and the
// snapshot with a file of testdata, and returns the machine that the snapshot makes.
func keepsBytes(t *testing.T, m *Machine, name string, from int, list []any) *Machine {
	t.Helper()
	var lines []string
	for i, c := range list {
		lines = append(lines, fmt.Sprintf("%T %x", c, encode(c)), fmt.Sprintf("answer %x", m.Apply(uint64(from+i), encode(c))))
	}
	stored := snapshot(t, m)
	text := strings.Join(append(lines, fmt.Sprintf("snapshot %x", stored)), "\n") + "\n"
	if diff := cmp.Diff(kept(t, name, text), text); diff != "" {
		t.Fatalf("formats (-want +got):\n%s", diff)
	}
	again := New(newTable(t), testArena)
	if err := again.Restore(bytes.NewReader(stored)); err != nil || again.Digest() != m.Digest() {
		t.Fatalf("restore: %v", err)
	}
	return again
}
