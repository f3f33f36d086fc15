package membership

import (
	"bytes"
	"errors"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/memberlist"

	"facet/internal/id"
	"facet/internal/must"
)

// full returns a node with long names and the five voters of a large cluster.
func full() Meta {
	return Meta{
		Member: id.NewMember(nodeID(1), math.MaxUint32), Incarnation: math.MaxUint64,
		Address:      "facet-12.facet-peers.biometrics.svc.cluster.local:7001",
		PublicURL:    "https://facet-12.facet-peers.biometrics.svc.cluster.local:8443",
		AdminAddress: "facet-12.facet-peers.biometrics.svc.cluster.local:9001",
		Zone:         "ap-southeast-2a", Weight: weightMax, Pack: "0123456789abcdef", Version: "v1.20.300-rc1",
		Cluster:    id.Cluster{UUID: id.Random([16]byte{2})},
		MetaVoters: []id.Node{nodeID(1), nodeID(2), nodeID(3), nodeID(4), nodeID(5)},
	}
}

func TestLimitEqualsMemberlists(t *testing.T) {
	t.Parallel()
	if metaBytesMax != memberlist.MetaMaxSize {
		t.Errorf("got %d, want %d", metaBytesMax, memberlist.MetaMaxSize)
	}
}

func TestLongMetadataFits(t *testing.T) {
	t.Parallel()
	want := full()
	b, err := want.encode()
	must.Do(t, err)
	t.Logf("%d bytes", len(b))
	got, err := decodeMeta(b)
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("got %v %v", cmp.Diff(want, got), err)
	}
}

// Nodes up to 0.3 may send the field 13.
func TestMetadataWithUnknownFieldIsRead(t *testing.T) {
	t.Parallel()
	b, err := full().encode()
	must.Do(t, err)
	var fields map[uint64]any
	must.Do(t, cbor.Unmarshal(b, &fields))
	fields[13] = 5e-10
	b, err = cbor.Marshal(fields)
	must.Do(t, err)
	if got, err := decodeMeta(b); err != nil || !cmp.Equal(got, full()) {
		t.Errorf("got %v %v", cmp.Diff(full(), got), err)
	}
}

func TestBadMetadataIsRefused(t *testing.T) {
	t.Parallel()
	f := func(name string, edit func(*Meta)) {
		t.Helper()
		m := full()
		edit(&m)
		if _, err := m.encode(); !errors.Is(err, ErrMeta) {
			t.Errorf("%s: got %v, want ErrMeta", name, err)
		}
	}
	f("no member", func(m *Meta) { m.Member = "" })
	f("member", func(m *Meta) { m.Member = "x" })
	f("no address", func(m *Meta) { m.Address = "" })
	for _, a := range []string{":1", "host", "host:", "host:0", "host:65536", "host:-1", "a b:1", "a/b:1", "a\n:1", strings.Repeat("a", 200) + ":1"} {
		f("address "+a, func(m *Meta) { m.Address = a })
		f("admin address "+a, func(m *Meta) { m.AdminAddress = a })
	}
	f("no weight", func(m *Meta) { m.Weight = 0 })
	f("weight", func(m *Meta) { m.Weight = weightMax + 1 })
	f("zone", func(m *Meta) { m.Zone = strings.Repeat("z", zoneBytesMax+1) })
	f("pack", func(m *Meta) { m.Pack = "\x1b[31m" })
	f("version", func(m *Meta) { m.Version = "\xff" })
	f("voters", func(m *Meta) { m.MetaVoters = make([]id.Node, votersMax+1) })
	f("all too long together", func(m *Meta) {
		m.PublicURL, m.Zone = strings.Repeat("u", addressBytesMax), strings.Repeat("z", zoneBytesMax)
	})
}

func FuzzPeerMetadataIsBounded(f *testing.F) {
	m := full()
	b, err := m.encode()
	must.Do(f, err)
	f.Add(b)
	f.Add(b[:len(b)/2])
	f.Add([]byte{0xbb, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0xa1, 0x01, 0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := decodeMeta(b)
		if err != nil {
			if !errors.Is(err, ErrMeta) {
				t.Fatalf("got %v, want ErrMeta", err)
			}
			return
		}
		again, err := got.encode()
		if errors.Is(err, ErrMeta) && len(b) > metaBytesMax/2 {
			return // the input had the same content in more bytes
		}
		if err != nil {
			t.Fatalf("took %+v, which can't be written: %v", got, err)
		}
		if back, err := decodeMeta(again); err != nil || !cmp.Equal(back, got) {
			t.Fatalf("got %+v %v, want %+v", back, err, got)
		}
	})
}

// The file of the book is bounded.
func TestBookKeepsTheLatestAddresses(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "addresses")
	log := slog.New(slog.DiscardHandler)
	b := openBook(file, log)
	long := strings.Repeat("a", addressBytesMax-6) + ":12345"
	for i := range uint32(bookMax + 10) {
		b.remember(id.NewMember(nodeID(1), i), long)
	}
	b.remember(id.NewMember(nodeID(1), 20), "moved:1")
	b.forget(id.NewMember(nodeID(1), 21))
	b.save(map[id.Member]string{id.NewMember(nodeID(2), 1): "there:1"})
	back := openBook(file, log)
	f := func(member id.Member, want string) {
		t.Helper()
		if got, ok := back.address(member); got != want || ok != (want != "") {
			t.Errorf("%s: got %.20q %v, want %.20q", member, got, ok, want)
		}
	}
	f(id.NewMember(nodeID(1), 9), "") // the oldest was dropped
	f(id.NewMember(nodeID(1), 10), long)
	f(id.NewMember(nodeID(1), 20), "moved:1")
	f(id.NewMember(nodeID(1), 21), "")
	f(id.NewMember(nodeID(2), 1), "there:1")
	if got := back.addresses(); len(got) != bookMax || got[0] != "there:1" || got[1] != "moved:1" {
		t.Errorf("got %d addresses, the first %q", len(got), got[:2])
	}
	entries, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(entries) != 1 {
		t.Errorf("files left: %v %v", entries, err)
	}
}

func TestDamagedBookIsReplaced(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "addresses")
	must.Do(t, os.WriteFile(file, []byte(`[{"member":"x","address":"y"}`), 0o600))
	var out bytes.Buffer
	b := openBook(file, slog.New(slog.NewTextHandler(&out, nil)))
	if got := b.addresses(); len(got) != 0 || !strings.Contains(out.String(), "not read") {
		t.Errorf("got %q, log %q", got, out.String())
	}
	b.save(map[id.Member]string{id.NewMember(nodeID(2), 1): "there:1"})
	if got := openBook(file, slog.New(slog.DiscardHandler)).addresses(); len(got) != 1 {
		t.Errorf("after saving: got %q", got)
	}
}

// The entries are in order, or the file is refused.
func FuzzBookFile(f *testing.F) {
	f.Add([]byte(`[{"member":"` + string(id.NewMember(nodeID(1), 1)) + `","address":"host:1"}]`))
	f.Add([]byte(`[{"member":"x","address":"host:1"}]`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		entries, err := parseBook(raw)
		if err != nil {
			return
		}
		for _, e := range entries {
			if _, err := e.Member.Node(); err != nil || !isAddress(e.Address) {
				t.Fatalf("took %+v", e)
			}
		}
	})
}
