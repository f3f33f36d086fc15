package shardfsm

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"facet/internal/id"
	"facet/internal/must"
	"facet/raftfsm/fsmtest"
	"facet/raftfsm/metafsm"
	"facet/shard"
)

func TestRestorationBytesMatchFormat(t *testing.T) {
	t.Parallel()
	m := filled(t) // so that the base is not 0
	slice := shard.CopiedSlice{Gallery: id.Gallery{UUID: id.UUID{8}}, Generation: 2, Granted: 9, Returned: 1, Epoch: 3}
	begin := Load{Slice: slice}
	var b strings.Builder
	apply := func(c Load) LoadAnswer {
		t.Helper()
		cmd := LoadOp.Encode(c)
		answer := m.Apply(10, cmd)
		fmt.Fprintf(&b, "load %x\nanswer %x\n", cmd, answer)
		a, err := LoadOp.Answer(answer)
		must.Do(t, err)
		return a
	}
	base := apply(begin).Last
	rest := Load{Slice: slice, Base: base, Entries: []shard.CopiedEntry{
		{Subject: id.Subject{UUID: id.UUID{2, 40}}, Event: id.Event{UUID: id.UUID{3, 40}}, Time: 5, Tags: []uint32{7}, Sealed: []byte{1}, Revision: 2, Sequence: 6, First: 4},
		{Subject: id.Subject{UUID: id.UUID{2, 41}}, Event: id.Event{UUID: id.UUID{3, 41}}, Time: 6, Deleted: true, Sequence: 7, First: 7},
	}}
	if got, want := apply(rest), (LoadAnswer{Done, 2, base + 7}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := apply(rest), (LoadAnswer{Moved, 2, base + 7}); got != want {
		t.Errorf("again: got %+v, want %+v", got, want)
	}
	fmt.Fprintf(&b, "snapshot %x\n", fsmtest.Snapshot(t, m))
	if diff := cmp.Diff(fsmtest.Kept(t, "load.txt", b.String()), b.String()); diff != "" {
		t.Fatalf("formats (-want +got):\n%s", diff)
	}
}

// TestCommandFieldsMatchLevel compares the fields of all commands with
// testdata/fields.txt. A new field ends every older node that reads it.
func TestCommandFieldsMatchLevel(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	fmt.Fprintf(&b, "level %d\n", metafsm.Level)
	for code, row := range commands {
		if row.Type != nil {
			fmt.Fprintf(&b, "%d %s\n", code, fsmtest.Fields(row.Type))
		}
	}
	if diff := cmp.Diff(fsmtest.Kept(t, "fields.txt", b.String()), b.String()); diff != "" {
		t.Fatalf("commands have other fields than at their level; docs/formats/commands.md says what that takes (-want +got):\n%s", diff)
	}
}
