package snapshots

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"facet/internal/must"
	"facet/raftfsm/health"
)

// noTransport only encodes the addresses in configurations.
var _, noTransport = raft.NewInmemTransport("member-a")

func sampleMeta() raft.SnapshotMeta {
	return raft.SnapshotMeta{
		Version: 1, Index: 40, Term: 3, ConfigurationIndex: 1,
		Configuration: raft.Configuration{Servers: []raft.Server{{ID: "member-a", Address: "member-a"}}},
	}
}

// state is the state of a machine: a text.
type state struct{ text []byte }

// newState returns the state after so many commands.
func newState(commands int) *state {
	s := new(state)
	for i := range commands {
		s.text = fmt.Appendf(s.text, "%c command %d\n", 'a'+i%20, i)
	}
	return s
}

func (s *state) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(s.text)
	return int64(n), err
}

func (s *state) restore(r io.Reader) (err error) {
	s.text, err = io.ReadAll(io.LimitReader(r, 64<<20))
	return err
}

// sampleSnapshot returns the bytes of a snapshot, and its state.
func sampleSnapshot(tb testing.TB, commands int) ([]byte, *state) {
	tb.Helper()
	s, meta := newState(commands), sampleMeta()
	var b bytes.Buffer
	must.Do(tb, writeSnapshot(&b, newHeader(7, &meta), s))
	return b.Bytes(), s
}

func restoreSample(b []byte, s *state) error {
	meta := sampleMeta()
	return readSnapshot(bytes.NewReader(b), int64(len(b)), newHeader(7, &meta), s.restore)
}

func TestSnapshotRestoresState(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 500} {
		b, want := sampleSnapshot(t, n)
		got := newState(1)
		must.Do(t, restoreSample(b, got))
		if !bytes.Equal(got.text, want.text) {
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
		if restoreSample(b, new(state)) == nil {
			t.Errorf("byte %d of %d changed, and restored", i, len(good))
		}
	}
	for n := range good {
		if restoreSample(good[:n], new(state)) == nil {
			t.Errorf("cut to %d of %d bytes, and restored", n, len(good))
		}
	}
}

func TestSinkRefusesDamagedSnapshot(t *testing.T) {
	t.Parallel()
	log, h := openLog(t)
	store, err := New(Config{
		Dir: t.TempDir(), Group: 7, Logs: log, Own: log, Health: h, Log: slog.New(slog.DiscardHandler), RaftLog: hclog.NewNullLogger(),
	})
	must.Do(t, err)
	good, _ := sampleSnapshot(t, 50)
	meta := sampleMeta()
	install := func(index uint64, b []byte) error {
		t.Helper()
		sink, err := store.Create(1, index, meta.Term, meta.Configuration, meta.ConfigurationIndex, noTransport)
		must.Do(t, err)
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
		if err := install(index, b); !errors.Is(err, health.ErrCorrupt) {
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
		if restoreSample(b, new(state)) == nil && len(b) < trailerBytes {
			t.Errorf("%d bytes were restored", len(b))
		}
	})
}
