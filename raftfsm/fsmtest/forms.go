package fsmtest

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"facet/internal/codec"
	"facet/raftfsm"
	"facet/raftfsm/command"
)

// Kept returns the text in a file of testdata. With the test's flag -rewrite it writes got
// there first.
func Kept(t testing.TB, name, got string) string {
	t.Helper()
	name = filepath.Join("testdata", name)
	if f := flag.Lookup("rewrite"); f != nil && f.Value.String() == "true" {
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

// Transcript is a file of testdata with commands, the answers and a snapshot.
type Transcript[M any] struct {
	File  string
	Table []command.Row[M]
	// Index returns the index of the i-th command.
	Index func(i int) uint64
}

// From numbers commands from an index on.
func From(first uint64) func(int) uint64 { return func(i int) uint64 { return first + uint64(i) } }

// Check applies commands to m. It compares their bytes, the answers and the snapshot with the
// file. It restores the snapshot into again, an empty machine, and returns it.
func (f Transcript[M]) Check(t testing.TB, m, again raftfsm.Machine, list []any) (stored []byte) {
	t.Helper()
	var b strings.Builder
	for i, c := range list {
		cmd := Encode(f.Table, c)
		fmt.Fprintf(&b, "%T %x\nanswer %x\n", c, cmd, m.Apply(f.Index(i), cmd))
	}
	stored = Snapshot(t, m)
	fmt.Fprintf(&b, "snapshot %x\n", stored)
	if diff := cmp.Diff(Kept(t, f.File, b.String()), b.String()); diff != "" {
		t.Fatalf("formats (-want +got):\n%s", diff)
	}
	if err := again.Restore(bytes.NewReader(stored)); err != nil || again.Digest() != m.Digest() {
		t.Fatalf("restore: %v", err)
	}
	return stored
}

// Status returns the first field of an answer.
func Status[S any](t testing.TB, answer []byte) S {
	t.Helper()
	m, err := codec.Split(answer)
	if err != nil {
		t.Fatal(err)
	}
	var a struct {
		Status S `cbor:"1,keyasint"`
	}
	_ = m.Decode(m.Head, &a) // other fields are unknown to a
	return a.Status
}

// CheckDamage fails t if m restores a snapshot that is cut or has a changed byte, or if the
// attempt changes m.
func CheckDamage(t testing.TB, m raftfsm.Machine, good []byte) {
	t.Helper()
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

// CheckUnreadable fails t unless m panics at a command that it can't read and may not skip.
// sound is a command that changes nothing.
func CheckUnreadable(t testing.TB, m raftfsm.Machine, sound []byte) {
	t.Helper()
	before := m.Digest()
	f := func(name string, cmd []byte, want bool) {
		t.Helper()
		defer func() {
			if got := recover() != nil; got != want {
				t.Errorf("%s: panics %v, want %v", name, got, want)
			}
		}()
		m.Apply(99, cmd)
	}
	f("empty", nil, false)
	f("skippable", []byte{codec.Skippable | 5, 1, 0xff}, false)
	f("unknown", []byte{0x3f, 1, 0xa0}, true)
	f("a later version", append([]byte{sound[0], 2}, sound[2:]...), true)
	f("an answer", m.Apply(99, sound), true)
	f("cut", sound[:5], true)
	if m.Digest() != before {
		t.Error("an unreadable command changed the state")
	}
}

// CheckEncoding fuzzes the decoding and encoding of commands of a table, beginning with those of a list.
func CheckEncoding[M any](f *testing.F, table []command.Row[M], list []any) {
	for _, c := range list {
		f.Add(Encode(table, c))
	}
	f.Add([]byte{0x80, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Decode(table, b)
		if err != nil {
			return
		}
		first := Encode(table, c)
		again, err := Decode(table, first)
		if err != nil || !bytes.Equal(Encode(table, again), first) {
			t.Fatalf("%x is encoded as %x, then %v", b, first, err)
		}
	})
}

// CheckRestore fuzzes Restore, which fails or leads to a state that survives a snapshot.
func CheckRestore(f *testing.F, empty func() raftfsm.Machine, magic codec.Magic, list ...[]byte) {
	for _, b := range list {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		// Reframe repairs the frame, so that Restore reads the records behind it.
		for _, b := range [][]byte{b, Reframe(b, magic)} {
			m := empty()
			before := m.Digest()
			if err := m.Restore(bytes.NewReader(b)); err != nil {
				if m.Digest() != before {
					t.Fatalf("a refused snapshot changed the state: %v", err)
				}
				continue
			}
			again := empty()
			if err := again.Restore(bytes.NewReader(Snapshot(t, m))); err != nil || again.Digest() != m.Digest() {
				t.Fatalf("the restored state does not survive a snapshot: %v", err)
			}
		}
	})
}
