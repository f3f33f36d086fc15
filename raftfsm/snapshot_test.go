package raftfsm

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

func sampleMeta() raft.SnapshotMeta {
	return raft.SnapshotMeta{
		Version: 1, Index: 40, Term: 3, ConfigurationIndex: 1,
		Configuration: raft.Configuration{Servers: []raft.Server{{ID: "member-a", Address: "member-a"}}},
	}
}

// sampleSnapshot gives the bytes of a snapshot and the machine that it is of.
func sampleSnapshot(tb testing.TB, commands int) ([]byte, *journal) {
	tb.Helper()
	j := newJournal()
	for i := range commands {
		j.Apply(uint64(i+1), fmt.Appendf(nil, "%c command %d", 'a'+i%20, i))
	}
	frozen, err := j.Freeze()
	if err != nil {
		tb.Fatal(err)
	}
	meta := sampleMeta()
	var b bytes.Buffer
	if err := writeSnapshot(&b, snapshotHeader(7, &meta), frozen); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes(), j
}

func restoreSample(b []byte, m Machine) error {
	meta := sampleMeta()
	return readSnapshot(bytes.NewReader(b), int64(len(b)), snapshotHeader(7, &meta), m)
}

func TestSnapshotRestoresTheSameState(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 500} {
		b, want := sampleSnapshot(t, n)
		got := newJournal()
		got.Apply(1, []byte("of an old state"))
		if err := restoreSample(b, got); err != nil {
			t.Fatal(err)
		}
		if got.Digest() != want.Digest() || got.count() != want.count() {
			t.Errorf("after %d commands: the restored state differs", n)
		}
	}
}

func TestDamagedSnapshotIsRefused(t *testing.T) {
	t.Parallel()
	good, _ := sampleSnapshot(t, 50)
	for i := range good {
		b := bytes.Clone(good)
		b[i] ^= 1 << rand.N(8)
		if restoreSample(b, newJournal()) == nil {
			t.Errorf("byte %d of %d changed, and restored", i, len(good))
		}
	}
	for n := range good {
		if restoreSample(good[:n], newJournal()) == nil {
			t.Errorf("cut to %d of %d bytes, and restored", n, len(good))
		}
	}
}

func TestSinkRefusesADamagedSnapshotAndKeepsTheOldOne(t *testing.T) {
	t.Parallel()
	s, h := openLog(t, t.TempDir())
	cfg := Config{Group: 7, Dir: t.TempDir()}
	store, err := openSnapshots(&cfg, s, s.Pin, h, hclog.NewNullLogger(), nil)
	if err != nil {
		t.Fatal(err)
	}
	good, _ := sampleSnapshot(t, 50)
	meta := sampleMeta()
	install := func(index uint64, b []byte) error {
		t.Helper()
		sink, err := store.Create(1, index, meta.Term, meta.Configuration, meta.ConfigurationIndex, new(transport))
		if err != nil {
			t.Fatal(err)
		}
		for len(b) > 0 { // in pieces, as they come from the wire
			n := min(len(b), 1+rand.N(30))
			if _, err := sink.Write(b[:n]); err != nil {
				t.Fatal(err)
			}
			b = b[n:]
		}
		return sink.Close()
	}
	if err := install(meta.Index, good); err != nil {
		t.Fatalf("a sound snapshot: %v", err)
	}
	f := func(what string, index uint64, b []byte) {
		t.Helper()
		if err := install(index, b); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: got %v, want ErrCorrupt", what, err)
		}
		list, err := store.List()
		if err != nil || len(list) != 1 || list[0].Index != meta.Index {
			t.Errorf("%s: the list is now %v, %v", what, list, err)
		}
	}
	flipped := bytes.Clone(good)
	flipped[len(good)/2] ^= 4
	f("a flipped bit", meta.Index, flipped)
	f("half of it", meta.Index, good[:len(good)/2])
	f("nothing", meta.Index, nil)
	f("one of another index", meta.Index+1, good)
	if err := h.Failed(); err != nil {
		t.Errorf("a peer's bytes took the group out: %v", err)
	}
}

func FuzzReadSnapshotNeverPanics(f *testing.F) {
	good, _ := sampleSnapshot(f, 20)
	f.Add(good)
	f.Add(good[:40])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if restoreSample(b, newJournal()) == nil && len(b) < snapshotTrailerBytes {
			t.Errorf("%d bytes were restored", len(b))
		}
	})
}
