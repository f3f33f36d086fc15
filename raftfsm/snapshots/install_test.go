package snapshots

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"facet/internal/must"
	"facet/raftfsm/health"
	"facet/shard/segment"
)

// makeSet makes a set of n segments.
func makeSet(t testing.TB, s *segment.Store, n int) *segment.Set {
	t.Helper()
	var parts []segment.Part
	for i := range n {
		w, err := s.Create()
		must.Do(t, err)
		for j := range 5 {
			w.Add(segment.Record{Sequence: uint64(10*i + j + 1), Clear: fmt.Appendf(nil, "clear %d", i), Sealed: bytes.Repeat([]byte{byte(i)}, 200)})
		}
		f, err := w.Close()
		must.Do(t, err)
		parts = append(parts, segment.Part{File: f})
	}
	set, err := segment.NewSet(parts)
	must.Do(t, err)
	return set
}

// shelf is a store of snapshots with segments, on a folder.
type shelf struct {
	*Store
	dir     string
	damaged atomic.Int64 // segments that became unreadable
}

func openShelf(t testing.TB) *shelf {
	t.Helper()
	log, h := openLog(t)
	dir := t.TempDir()
	s := &shelf{dir: dir}
	segments, err := segment.Open(SegmentsDir(dir), segment.Options{Damaged: func(error) { s.damaged.Add(1) }})
	must.Do(t, err)
	s.Store, err = New(Config{
		Dir: dir, Group: 7, Logs: log, Own: log, Health: h, Segments: segments,
		Log: slog.New(slog.DiscardHandler), RaftLog: hclog.NewNullLogger(),
	})
	must.Do(t, err)
	t.Cleanup(s.Close)
	return s
}

// sink returns the sink of the snapshot that sampleMeta describes.
func (s *shelf) sink(t testing.TB) *Sink {
	t.Helper()
	meta := sampleMeta()
	sink, err := s.Create(1, meta.Index, meta.Term, meta.Configuration, meta.ConfigurationIndex, noTransport)
	must.Do(t, err)
	return sink.(*Sink)
}

// filledShelf returns a shelf with a snapshot of n segments, and the open snapshot.
func filledShelf(t testing.TB, n int) (s *shelf, open *Snapshot) {
	t.Helper()
	s = openShelf(t)
	set := makeSet(t, s.segments, n)
	var files []*segment.File
	for _, p := range set.Parts() {
		files = append(files, p.File)
	}
	sink := s.sink(t)
	sink.Settled(files, func() {})
	must.Do(t, errors.Join(sink.WriteState(newState(1)), sink.Close()))
	set.Release()
	_, r, err := s.Open(sink.ID())
	must.Do(t, err)
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, r.(*Snapshot)
}

// onWire returns an open snapshot's bytes. It can be read once.
func onWire(t testing.TB, o *Snapshot, have map[segment.Hash]bool) []byte {
	t.Helper()
	b, err := io.ReadAll(o.onWire(have))
	if err != nil || int64(len(b)) != o.wireBytes(have) {
		t.Fatalf("%d bytes, %d announced, %v", len(b), o.wireBytes(have), err)
	}
	return b
}

// install writes b to a shelf as a leader's snapshot, in pieces.
func (s *shelf) install(t testing.TB, b []byte) error {
	t.Helper()
	sink := s.sink(t)
	for len(b) > 0 {
		n := min(len(b), 1+rand.N(90))
		if _, err := sink.Write(b[:n]); err != nil {
			return errors.Join(err, sink.Cancel())
		}
		b = b[n:]
	}
	return sink.Close()
}

// files returns the names of the segments and snapshots on the shelf.
func (s *shelf) files(t testing.TB) (segments, snapshots []string) {
	t.Helper()
	segments, err := filepath.Glob(filepath.Join(SegmentsDir(s.dir), "*"))
	must.Do(t, err)
	snapshots, err = filepath.Glob(filepath.Join(s.dir, "snapshots", "*"))
	must.Do(t, err)
	return segments, snapshots
}

func TestSnapshotWithSegmentsArrives(t *testing.T) {
	t.Parallel()
	arrives(t, 3)
}

// TestSnapshotWithoutSegmentsArrives sends a snapshot in the form with segments that has none.
func TestSnapshotWithoutSegmentsArrives(t *testing.T) {
	t.Parallel()
	arrives(t, 0)
}

// arrives sends a snapshot with n segments from one shelf to another.
func arrives(t *testing.T, n int) {
	_, o := filledShelf(t, n)
	to := openShelf(t)
	must.Do(t, to.install(t, onWire(t, o, nil)))
	meta, r, err := to.Open(firstID(t, to))
	must.Do(t, err)
	defer r.Close()
	got := r.(*Snapshot)
	if diff := cmp.Diff(o.refs(), got.refs()); diff != "" || meta.Size != o.wireBytes(nil) {
		t.Errorf("%d bytes, segments (-want +got):\n%s", meta.Size, diff)
	}
	if err := got.Restore(new(state).restore); err != nil {
		t.Error(err)
	}
}

func firstID(t testing.TB, s *shelf) string {
	t.Helper()
	list, err := s.List()
	if err != nil || len(list) != 1 {
		t.Fatalf("snapshots %v, %v", list, err)
	}
	return list[0].ID
}

func TestHeldSegmentsAreNotSent(t *testing.T) {
	t.Parallel()
	from, o := filledShelf(t, 3)
	to := openShelf(t)
	refs := o.refs()
	copySegment(t, from, to, refs[1].Hash)
	have := map[segment.Hash]bool{refs[1].Hash: true}
	less := onWire(t, o, have)
	if err := to.install(t, less); err != nil {
		t.Fatalf("with the second segment there: %v", err)
	}
	if segments, _ := to.files(t); len(segments) != 3 {
		t.Errorf("segments %v, want three", segments)
	}
	// The member has lost the segment since its answer.
	bare := openShelf(t)
	if err := bare.install(t, less); !errors.Is(err, health.ErrCorrupt) {
		t.Errorf("without it: got %v, want ErrCorrupt", err)
	}
	if _, snapshots := bare.files(t); len(snapshots) != 0 {
		t.Errorf("without it: snapshots %v", snapshots)
	}
}

func copySegment(t testing.TB, from, to *shelf, h segment.Hash) {
	t.Helper()
	name := h.String() + ".seg"
	b, err := os.ReadFile(filepath.Join(SegmentsDir(from.dir), name))
	if err == nil {
		err = os.WriteFile(filepath.Join(SegmentsDir(to.dir), name), b, 0o600)
	}
	must.Do(t, err)
}

func TestDamagedTransferLeavesNoSnapshot(t *testing.T) {
	t.Parallel()
	_, o := filledShelf(t, 2)
	good := onWire(t, o, nil)
	to := openShelf(t)
	check := func(what string, err error) {
		t.Helper()
		if err == nil {
			t.Fatalf("%s: installed", what)
		}
		if _, snapshots := to.files(t); len(snapshots) != 0 {
			t.Fatalf("%s: snapshots %v", what, snapshots)
		}
		segments, _ := to.files(t)
		for _, name := range segments {
			if filepath.Ext(name) != ".seg" {
				t.Fatalf("%s: %s stays", what, name)
			}
		}
		must.Do(t, to.segments.Collect())
		if segments, _ := to.files(t); len(segments) != 0 {
			t.Fatalf("%s: segments %v stay for ever", what, segments)
		}
	}
	for i := 0; i < len(good); i += 1 + rand.N(120) {
		b := bytes.Clone(good)
		b[i] ^= 1 << rand.N(8)
		check(fmt.Sprintf("byte %d of %d changed", i, len(good)), to.install(t, b))
		check(fmt.Sprintf("cut to %d of %d bytes", i, len(good)), to.install(t, good[:i]))
	}
	check("a byte more", to.install(t, append(bytes.Clone(good), 0)))
	if err := to.health.Failed(); err != nil {
		t.Errorf("a peer's bytes took the group out: %v", err)
	}
}

func TestSnapshotLackingSegmentsIsRefused(t *testing.T) {
	t.Parallel()
	s, o := filledShelf(t, 2)
	name := firstID(t, s)
	must.Do(t, o.Close())
	s.Close()
	must.Do(t, s.segments.Collect())
	if _, _, err := s.Open(name); !errors.Is(err, health.ErrCorrupt) || s.health.Failed() == nil {
		t.Errorf("got %v, want ErrCorrupt and a group that is taken out", err)
	}
	o.closer = io.NopCloser(nil)
}

func TestOfferIsAnsweredBitByBit(t *testing.T) {
	t.Parallel()
	_, o := filledShelf(t, 11)
	s, _ := filledShelf(t, 3) // the same three
	hashes := o.Offer()
	got, err := AnswerOffer(bytes.NewReader(hashes), int64(len(hashes)), s.segments)
	if want := []byte{7, 0}; err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	f := func(what string, b []byte, size int64) {
		t.Helper()
		if _, err := AnswerOffer(bytes.NewReader(b), size, s.segments); err == nil {
			t.Errorf("%s is answered", what)
		}
	}
	f("no hash", nil, 0)
	f("half a hash", hashes[:16], 16)
	f("fewer than announced", hashes[:32], 64)
	f("too many", hashes, 32*(segmentsMax+1))
	f("a negative number", hashes, -32)
}

func FuzzInstallNeverPanics(f *testing.F) {
	_, o := filledShelf(f, 2)
	good := onWire(f, o, nil)
	f.Add(good)
	f.Add(good[:30])
	plain, _ := sampleSnapshot(f, 20)
	f.Add(plain)
	f.Fuzz(func(t *testing.T, b []byte) {
		s := openShelf(t)
		if s.install(t, b) == nil {
			meta, r, err := s.Open(firstID(t, s))
			if err != nil {
				t.Fatalf("installed, and can't be opened: %v", err)
			}
			if want := sampleMeta(); meta.Index != want.Index {
				t.Fatalf("index %d", meta.Index)
			}
			must.Do(t, r.Close())
		}
	})
}
