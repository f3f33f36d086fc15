package shardfsm

import (
	"context"
	"encoding/hex"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"facet/engine"
	"facet/internal/id"
	"facet/raftfsm"
	"facet/shard"
	"facet/shard/seal"
)

// loopback is a StreamLayer over TCP on this machine.
type loopback struct{ net.Listener }

func (loopback) Dial(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", address)
}

// openGroup opens the only member of a group on its folder.
func openGroup(t testing.TB, dir string, m *Machine, tune func(*raftfsm.Config)) *raftfsm.Group {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg := raftfsm.Config{
		Group: 7, Self: "member-a", Dir: dir, Stream: loopback{l},
		Resolve: func(id.Member) (string, error) { return l.Addr().String(), nil },
		Timing:  raftfsm.Timing{Heartbeat: 50 * time.Millisecond, Election: 50 * time.Millisecond, Lease: 50 * time.Millisecond},
		Fatal:   func(err error) { t.Error(err) },
	}
	if tune != nil {
		tune(&cfg)
	}
	g, err := raftfsm.Open(cfg, m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := g.Bootstrap([]raftfsm.Server{{Member: "member-a", Voter: true}}); err != nil {
		t.Fatal(err)
	}
	return g
}

// settle waits until the member leads and has applied its log.
func settle(t testing.TB, g *raftfsm.Group) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		index, err := g.ReadIndex(ctx)
		if err == nil {
			err = g.WaitApplied(ctx, index)
		}
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// oldDigest is the digest of the state in testdata/group-1. A build without segments wrote
// it: two galleries, a fence with entries to purge, a job, a pending event, remembered
// operations, and the log after them.
const oldDigest = "fbcbf86e54a527c70b392367360091933fa30bff49fddd416743a6231f3254d9"

func TestOlderFolderIsReadAndConverted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "group-1"))); err != nil {
		t.Fatal(err)
	}
	check := func(when string) {
		t.Helper()
		m := New(newTable(t), testArena)
		g := openGroup(t, dir, m, nil)
		settle(t, g)
		if digest := m.Digest(); hex.EncodeToString(digest[:]) != oldDigest {
			t.Errorf("%s: digest %x, want %s", when, digest, oldDigest)
		}
		if got, want := m.Shard().Slots().Stats(), (shard.Stats{Slices: 2, Granted: 49, Active: 34, Deleted: 4, Pending: 1, Purging: 1, SealedBytes: 3520}); got != want {
			t.Errorf("%s: got %+v, want %+v", when, got, want)
		}
		checkOldFaces(t, m)
		if err := g.Snapshot(); err != nil {
			t.Errorf("%s: %v", when, err)
		}
		if digest := m.Digest(); hex.EncodeToString(digest[:]) != oldDigest {
			t.Errorf("%s and a snapshot: digest %x, want %s", when, digest, oldDigest)
		}
		checkOldFaces(t, m)
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
	check("read")
	names, err := filepath.Glob(filepath.Join(dir, "segments", "*.seg"))
	if err != nil || len(names) != 1 {
		t.Errorf("segments %v, %v, want one", names, err)
	}
	check("read again from segments")
}

// checkOldFaces decrypts the faces in testdata/group-1.
func checkOldFaces(t *testing.T, m *Machine) {
	t.Helper()
	key, err := seal.NewKey([]byte("77777777777777777777777777777777"))
	if err != nil {
		t.Fatal(err)
	}
	g := id.Gallery{UUID: id.UUID{0x77}}
	for n := range byte(30) {
		ref := shard.FaceRef{Gallery: g, Generation: 3, Subject: id.Subject{UUID: id.UUID{0x77, n}}, Event: id.Event{UUID: id.UUID{0x78, n}}}
		sealed, ok := m.Shard().Sealed(g, ref.Subject, ref.Event, 0)
		if !ok {
			t.Fatalf("event %d has no face", n)
		}
		face, err := shard.OpenFace(key, ref, sealed)
		if want := (engine.Template{float32(n), 1, 2, 3}); err != nil || len(face.Template) != len(want) || face.Template[0] != want[0] {
			t.Fatalf("event %d: %v, %v", n, face.Template, err)
		}
	}
}

func TestCrashLeftoversAreRemovedAtStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := New(newTable(t), testArena)
	g := openGroup(t, dir, m, nil)
	settle(t, g)
	for _, c := range []any{testGrant, testRegister(0), testRegister(2)} {
		if _, err := g.Propose(t.Context(), encode(c)); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.Snapshot(); err != nil {
		t.Fatal(err)
	}
	want := m.Digest()
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	files := func() []string {
		t.Helper()
		names, err := filepath.Glob(filepath.Join(dir, "segments", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	whole := files()
	if len(whole) != 1 {
		t.Fatalf("segments %v, want one", whole)
	}
	b, err := os.ReadFile(whole[0])
	if err != nil {
		t.Fatal(err)
	}
	// A segment of an unfinished snapshot, and parts of a segment, of a copy of the log
	// and of a snapshot.
	for name, b := range map[string][]byte{
		filepath.Join("segments", strings.Repeat("0a", 32)+".seg"): b,
		filepath.Join("segments", "17.tmp"):                        b[:100],
		"raft.db.tmp":                                              b[:50],
		filepath.Join("snapshots", "9-9-9.tmp", "state.bin"):       b,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m = New(newTable(t), testArena)
	g = openGroup(t, dir, m, nil)
	settle(t, g)
	if m.Digest() != want {
		t.Error("the state differs")
	}
	for _, name := range []string{"raft.db.tmp", filepath.Join("snapshots", "9-9-9.tmp")} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s stays", name)
		}
	}
	if got := files(); len(got) != 1 || got[0] != whole[0] {
		t.Errorf("segments %v, want %v", got, whole)
	}
}
