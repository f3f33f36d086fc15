package receipt

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"facet/internal/id"
	"facet/internal/must"
)

func key(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize))
}

func public(t testing.TB, of id.Cluster, n byte) string {
	t.Helper()
	text, err := PublicKey(of, key(n).Public().(ed25519.PublicKey))
	must.Do(t, err)
	return text
}

var testCluster = id.Cluster{UUID: id.UUID{9, 8}}

func example() *Receipt {
	at := time.Date(2026, 11, 26, 10, 0, 0, 0, time.UTC)
	return &Receipt{
		Format: Format, Cluster: testCluster, Tenant: "a \"tenant\"\n\n— x", Reported: at, DisksClean: true,
		Missing: []string{"1 backups may hold the subjects"},
		Subjects: []Subject{{
			Gallery: id.Gallery{UUID: id.UUID{1}}, GalleryName: "staff\x7f\u2028", Subject: id.Subject{UUID: id.UUID{2}}, Events: 61, Score: 9000,
			Answered: at, RequestID: "r", Commit: "group=3, index=70", Group: 3, Index: 77, Confirmed: at,
		}},
		Replicas: []Replica{{Group: 3, Node: id.Node{UUID: id.UUID{4}}, Name: "n1", State: "active", Needed: 77, Answered: at, Began: at, Ended: at, ErasedTo: 80, Clean: true}},
		Removed:  []Removed{{Node: id.Node{UUID: id.UUID{5}}, Name: "old"}},
		Backups:  []Backup{{Folder: "file:///b", Name: "auto-1", Created: at, Goes: at}},
	}
}

func signed(t testing.TB, r *Receipt, n byte) []byte {
	t.Helper()
	text, err := Sign(r, key(n))
	must.Do(t, err)
	return text
}

func TestSignedReceiptIsRead(t *testing.T) {
	t.Parallel()
	for n := range byte(200) { // keys whose base64 texts have plus signs, too
		got, err := Open(signed(t, example(), n), public(t, testCluster, n)+"\n")
		if err != nil {
			t.Fatalf("key %d: %v", n, err)
		}
		if diff := cmp.Diff(example(), got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
}

func TestChangedReceiptIsRefused(t *testing.T) {
	t.Parallel()
	text, with := signed(t, example(), 1), public(t, testCluster, 1)
	for bit := range 8 * len(text) {
		b := bytes.Clone(text)
		b[bit/8] ^= 1 << (bit % 8)
		if r, err := Open(b, with); !errors.Is(err, ErrReceipt) {
			t.Errorf("bit %d of %d: %v, %v", bit, 8*len(text), r, err)
		}
	}
	later := *example()
	later.Format++
	other := *example()
	other.Cluster.UUID[0]++
	for name, f := range map[string]struct {
		text []byte
		key  string
	}{
		"another key":                {text, public(t, testCluster, 2)},
		"a later format":             {signed(t, &later, 1), with},
		"another cluster's receipt":  {signed(t, &other, 1), with},
		"a key that is none":         {text, "facet+abc"},
		"cut":                        {text[:len(text)-1], with},
		"not signed":                 {text[:bytes.LastIndex(text, []byte("\n\n"))+2], with},
		"too long":                   {append(bytes.Repeat([]byte{'x'}, BytesMax), text...), with},
		"nothing":                    {nil, with},
		"of a cluster with that key": {text, public(t, other.Cluster, 1)},
	} {
		if r, err := Open(f.text, f.key); !errors.Is(err, ErrReceipt) {
			t.Errorf("%s: %v, %v", name, r, err)
		}
	}
}

func FuzzOpenReceipt(f *testing.F) {
	text := signed(f, example(), 1)
	f.Add(text, public(f, testCluster, 1))
	f.Add([]byte(title+"\n{}\n\n— x AAAA\n"), "x+00000000+AQ==")
	f.Fuzz(func(t *testing.T, b []byte, with string) {
		r, err := Open(b, with)
		if err != nil && !errors.Is(err, ErrReceipt) {
			t.Fatalf("%v", err)
		}
		if err == nil && strings.TrimSpace(with) == public(t, testCluster, 1) && !cmp.Equal(r, example()) {
			t.Fatalf("a receipt that was not signed: %v", r)
		}
	})
}
