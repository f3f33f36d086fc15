package cert

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"facet/internal/must"
)

// The certificate is issued for a key that never leaves its machine.
func TestRequestKeepsKeyLocal(t *testing.T) {
	t.Parallel()
	ca := newCA(t, "one")
	request, key, err := Request()
	must.Do(t, err)
	signed, err := ca.SignNode(request, nodeID(1), []string{"127.0.0.1"})
	must.Do(t, err)
	s, _ := source(t, ca, func() (Pair, error) { return Pair{Cert: signed, Key: key}, nil })
	state, serverErr, clientErr := talk(t, s.PeerConfig(), nodeSource(t, ca, 2).PeerConfig())
	if serverErr != nil || clientErr != nil {
		t.Fatalf("talk: %v, %v", serverErr, clientErr)
	}
	if who, err := NodeOf(state); err != nil || who != nodeID(1) && who != nodeID(2) {
		t.Errorf("got %v, %v", who, err)
	}
	server, err := ca.SignServer(request, []string{"n1.example.org", "10.0.0.1"})
	must.Do(t, err)
	parsed, err := Pair{Cert: server, Key: key}.parse()
	if err != nil || !slices.Equal(Hosts(parsed.Leaf), []string{"10.0.0.1", "n1.example.org"}) || len(parsed.Leaf.URIs) != 0 {
		t.Errorf("server certificate: %v, hosts %v, names %v", err, Hosts(parsed.Leaf), parsed.Leaf.URIs)
	}
	if _, err := ca.SignServer(request, nil); err == nil {
		t.Error("a server certificate for no host")
	}
}

func TestForeignRequestIsRefused(t *testing.T) {
	t.Parallel()
	ca := newCA(t, "one")
	request, _, err := Request()
	must.Do(t, err)
	f := func(name string, b []byte) {
		t.Helper()
		if _, err := ca.SignNode(b, nodeID(1), nil); !errors.Is(err, ErrRequest) {
			t.Errorf("%s: got %v, want ErrRequest", name, err)
		}
	}
	block, _ := pem.Decode(request)
	forged := bytes.Clone(block.Bytes)
	forged[len(forged)-1] ^= 1
	f("a forged signature", pem.EncodeToMemory(&pem.Block{Type: blockRequest, Bytes: forged}))
	f("nothing", nil)
	f("a certificate", ca.CertPEM())
	other, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	must.Do(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, other)
	must.Do(t, err)
	f("another curve", pem.EncodeToMemory(&pem.Block{Type: blockRequest, Bytes: der}))
}

func FuzzParseRequestTakesSignedKeysOnly(f *testing.F) {
	request, _, err := Request()
	must.Do(f, err)
	f.Add(request)
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\nMA==\n-----END CERTIFICATE REQUEST-----\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		key, err := parseRequest(b)
		if err == nil && key == nil || err != nil && !errors.Is(err, ErrRequest) {
			t.Fatalf("got %v, %v", key, err)
		}
	})
}

// An authority is replaced in three steps. At no step does a node with certificates
// of the step before refuse a node of the step after.
func TestAuthoritiesRotateWithoutPause(t *testing.T) {
	t.Parallel()
	old := newCA(t, "one")
	files := func(dir string) Files {
		return Files{CA: filepath.Join(dir, "ca.pem"), Cert: filepath.Join(dir, "c.pem"), Key: filepath.Join(dir, "c.key")}
	}
	load := func(by *CA, trust []byte, n byte) *Source {
		t.Helper()
		f := files(t.TempDir())
		p, err := by.IssueNode(nodeID(n), nil)
		must.Do(t, err)
		must.Do(t, errors.Join(p.Save(f.Cert, f.Key), os.WriteFile(f.CA, trust, 0o600)))
		s, err := Load(f, slog.New(slog.DiscardHandler))
		must.Do(t, err)
		return s
	}
	onlyOld := load(old, old.CertPEM(), 1)
	next, err := old.Successor()
	must.Do(t, err)
	both := old.CertPEM()
	steps := []*Source{onlyOld, load(old, both, 2), load(next, next.CertPEM(), 3), load(next, next.Alone().CertPEM(), 4)}
	for i, a := range steps {
		for j, b := range steps {
			_, serverErr, clientErr := talk(t, a.PeerConfig(), b.PeerConfig())
			if apart := max(i-j, j-i); apart <= 1 && (serverErr != nil || clientErr != nil) {
				t.Errorf("steps %d and %d: %v, %v", i, j, serverErr, clientErr)
			} else if apart == 3 && serverErr == nil && clientErr == nil {
				t.Errorf("steps %d and %d have no authority in common and talk", i, j)
			}
		}
	}
	dir := files(t.TempDir())
	saveCA(t, next, dir.CA, dir.Key)
	if again := loadCA(t, dir.CA, dir.Key); again.Trusted() != 2 || !bytes.Equal(again.CertPEM(), next.CertPEM()) {
		t.Errorf("from its files: %d trusted", again.Trusted())
	}
	if got := len(steps[1].Authorities()); got != 2 {
		t.Errorf("a node with both trusts %d", got)
	}
}
