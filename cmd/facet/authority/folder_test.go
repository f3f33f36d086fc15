package authority

import (
	"crypto/x509"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"facet/internal/id"
	"facet/internal/must"
	"facet/node/cert"
)

func nodeID(n byte) id.Node { return id.Node{UUID: id.Random([16]byte{n})} }

func open(t *testing.T, dir string) *Folder {
	t.Helper()
	f, err := OpenPlain(dir, "test")
	must.Do(t, err)
	return f
}

func bytesOf(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	must.Do(t, err)
	return string(b)
}

func TestSecondOpenKeepsAuthorityAndKeys(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "certificates")
	f := open(t, dir)
	files := []string{f.CA(), filepath.Join(dir, caKeyFile), f.ClusterKey(), f.GossipKey(), filepath.Join(f.Admin(), "admin.pem")}
	before := map[string]string{}
	for _, name := range files {
		before[name] = bytesOf(t, name)
	}
	open(t, dir)
	for _, name := range files {
		if bytesOf(t, name) != before[name] {
			t.Errorf("%s changed", filepath.Base(name))
		}
	}
	if bytesOf(t, f.ClusterKey()) == bytesOf(t, f.GossipKey()) {
		t.Error("both keys are the same")
	}
}

// No new authority is created.
func TestHalfAnAuthorityIsAnError(t *testing.T) {
	t.Parallel()
	for _, lost := range []string{caFile, caKeyFile} {
		dir := t.TempDir()
		open(t, dir)
		must.Do(t, os.Remove(filepath.Join(dir, lost)))
		_, err := OpenPlain(dir, "test")
		if err == nil {
			t.Fatalf("without %s: no error", lost)
		}
		advised := strings.Contains(err.Error(), "delete "+filepath.Join(dir, caKeyFile)) // the creation may have been interrupted
		if advised != (lost == caFile) {
			t.Errorf("without %s: %v", lost, err)
		}
	}
}

func TestSecretsAreReadableByTheirOwnerOnly(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "certificates")
	f := open(t, dir)
	if _, err := f.Ensure(NodeCertificates{"n1", nodeID(1), []string{"127.0.0.1"}}); err != nil {
		t.Fatal(err)
	}
	n1 := f.Node("n1")
	for _, name := range []string{
		filepath.Join(dir, caKeyFile), f.ClusterKey(), f.GossipKey(), filepath.Join(f.Admin(), "admin.key"),
		filepath.Join(n1, "node.key"), filepath.Join(n1, "server.key"), filepath.Join(n1, "status.key"),
	} {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: got %v, %v", name, info.Mode(), err)
		}
	}
}

// The certificates are replaced when they name another node.
func TestNodeKeepsItsCertificates(t *testing.T) {
	t.Parallel()
	f := open(t, t.TempDir())
	nodeFile, serverFile := filepath.Join(f.Node("n1"), "node.pem"), filepath.Join(f.Node("n1"), "server.pem")
	statusFile := filepath.Join(f.Node("n1"), "status.pem")
	issue := func(n byte, hosts ...string) (nodeCert, serverCert string) {
		t.Helper()
		if _, err := f.Ensure(NodeCertificates{"n1", nodeID(n), hosts}); err != nil {
			t.Fatal(err)
		}
		return bytesOf(t, nodeFile), bytesOf(t, serverFile)
	}
	n1, s1 := issue(1, "127.0.0.1", "localhost")
	looks := bytesOf(t, statusFile)
	if n, s := issue(1, "localhost", "127.0.0.1"); n != n1 || s != s1 || bytesOf(t, statusFile) != looks {
		t.Error("certificates changed without a reason")
	}
	n2, s2 := issue(2, "127.0.0.1", "localhost")
	if bytesOf(t, statusFile) == looks {
		t.Error("another node id: the status certificate is still the old one's")
	}
	if n2 == n1 || s2 != s1 {
		t.Errorf("another node id: node certificate new %t, server certificate kept %t, want both", n2 != n1, s2 == s1)
	}
	if n, s := issue(2, "127.0.0.1", "example.org"); n == n2 || s == s2 {
		t.Error("other hosts: certificates did not change")
	}
}

func TestCommandsUseNoNodeCertificate(t *testing.T) {
	t.Parallel()
	f := open(t, t.TempDir())
	if _, err := f.Ensure(NodeCertificates{"n1", nodeID(1), []string{"127.0.0.1"}}); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{f.Admin(): "admin.pem", f.Node("n1"): "status.pem", t.TempDir(): "admin.pem"} {
		if files, err := AdminFiles(dir); err != nil || filepath.Base(files.Cert) != want {
			t.Errorf("got %s, %v, want %s", files.Cert, err, want)
		}
	}
	if err := os.Remove(filepath.Join(f.Node("n1"), "status.pem")); err != nil { // as before 0.3.1
		t.Fatal(err)
	}
	if files, err := AdminFiles(f.Node("n1")); err == nil || !strings.Contains(err.Error(), "facet cluster renew") {
		t.Errorf("with a node's certificate only: %+v, %v", files, err)
	}
}

func TestIssuedCertificatesOpenTheirPorts(t *testing.T) {
	t.Parallel()
	f := open(t, t.TempDir())
	if _, err := f.Ensure(NodeCertificates{"n1", nodeID(1), []string{"127.0.0.1"}}); err != nil {
		t.Fatal(err)
	}
	dir := f.Node("n1")
	source, err := cert.Load(cert.Files{
		CA: filepath.Join(dir, "ca.pem"), Cert: filepath.Join(dir, "node.pem"), Key: filepath.Join(dir, "node.key"),
	}, slog.New(slog.DiscardHandler))
	must.Do(t, err)
	if got := source.Leaf().URIs[0].String(); got != "facet://test/node/"+nodeID(1).String() {
		t.Errorf("node certificate names %s", got)
	}
	server, err := leafOf(cert.Files{Cert: filepath.Join(dir, "server.pem"), Key: filepath.Join(dir, "server.key")})
	must.Do(t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(bytesOf(t, f.CA())))
	if _, err := server.Verify(x509.VerifyOptions{Roots: roots, DNSName: "127.0.0.1"}); err != nil {
		t.Errorf("server certificate: %v", err)
	}
}

func TestNodeNameStaysInItsFolder(t *testing.T) {
	t.Parallel()
	f := open(t, t.TempDir())
	for _, name := range []string{"", "admin", "../n1", "a/b", ".."} {
		if _, err := f.Ensure(NodeCertificates{name, nodeID(1), []string{"h"}}); err == nil {
			t.Errorf("%q: no error", name)
		}
	}
}
