package cert

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"facet/internal/id"
	"facet/internal/must"
	"facet/node/transport/memnet"
)

func nodeID(n byte) id.Node { return id.Node{UUID: id.Random([16]byte{n})} }

func newCA(t *testing.T, name string) *CA {
	t.Helper()
	ca, err := NewCA(name)
	must.Do(t, err)
	return ca
}

// source writes the authority's certificate and the one that issue returns, and
// loads them.
func source(t *testing.T, ca *CA, issue func() (Pair, error)) (*Source, Files) {
	t.Helper()
	dir := t.TempDir()
	files := Files{CA: filepath.Join(dir, "ca.pem"), Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "cert.key")}
	if issued, err := Ensure(files, ca, issue); err != nil || !issued {
		t.Fatalf("ensure: %v, %v", issued, err)
	}
	s, err := Load(files, slog.New(slog.DiscardHandler))
	must.Do(t, err)
	return s, files
}

func nodeSource(t *testing.T, ca *CA, n byte) *Source {
	t.Helper()
	s, _ := source(t, ca, func() (Pair, error) { return ca.IssueNode(nodeID(n), []string{"127.0.0.1"}) })
	return s
}

// talk does a handshake over a network in memory and sends a byte each way, because in TLS 1.3
// the client learns of a refusal only when it reads.
func talk(t *testing.T, server, client *tls.Config) (state tls.ConnectionState, serverErr, clientErr error) {
	t.Helper()
	host := memnet.New(1).Host("10.0.0.1")
	l, err := host.Listen(t.Context(), "10.0.0.1:1")
	must.Do(t, err)
	defer l.Close()
	b, err := host.Dial(t.Context(), "10.0.0.1:1")
	must.Do(t, err)
	defer b.Close()
	a, err := l.Accept()
	must.Do(t, err)
	defer a.Close()
	deadline := time.Now().Add(5 * time.Second)
	_, _ = a.SetDeadline(deadline), b.SetDeadline(deadline)
	sc, cc := tls.Server(a, server), tls.Client(b, client)
	done := make(chan error, 1)
	go func() {
		var one [1]byte
		_, err := io.ReadFull(sc, one[:])
		if err == nil {
			_, err = sc.Write(one[:])
		}
		if err != nil {
			a.Close()
		}
		done <- err
	}()
	_, clientErr = cc.Write([]byte{1})
	if clientErr == nil {
		_, clientErr = io.ReadFull(cc, make([]byte, 1))
	}
	if clientErr != nil {
		b.Close()
	}
	serverErr = <-done
	return sc.ConnectionState(), serverErr, clientErr
}

func TestSourceReportsAuthorityEnd(t *testing.T) {
	t.Parallel()
	ca := newCA(t, "one")
	if got := nodeSource(t, ca, 1).AuthorityEnd(); !got.Equal(ca.cert.NotAfter) {
		t.Errorf("got %v, want %v", got, ca.cert.NotAfter)
	}
}

func TestTwoNodesOfAClusterTalk(t *testing.T) {
	t.Parallel()
	ca := newCA(t, "one")
	state, serverErr, clientErr := talk(t, nodeSource(t, ca, 1).PeerConfig(), nodeSource(t, ca, 2).PeerConfig())
	if serverErr != nil || clientErr != nil {
		t.Fatalf("server %v, client %v", serverErr, clientErr)
	}
	if n, err := NodeOf(state); err != nil || n != nodeID(2) {
		t.Errorf("node at the other end: got %v %v, want %v", n, err, nodeID(2))
	}
	if state.Version != tls.VersionTLS13 || state.NegotiatedProtocol != PeerProtocol {
		t.Errorf("got version %x, protocol %q", state.Version, state.NegotiatedProtocol)
	}
}

func TestStrangerIsRefusedAtBothEnds(t *testing.T) {
	t.Parallel()
	ca := newCA(t, "one")
	good := nodeSource(t, ca, 1).PeerConfig()
	refused := func(name string, other *tls.Config) {
		t.Helper()
		other.VerifyConnection = nil // it accepts any peer
		if _, serverErr, _ := talk(t, good, other); serverErr == nil {
			t.Errorf("%s as client: the server took it", name)
		}
		if other.GetCertificate == nil {
			return
		}
		if _, _, clientErr := talk(t, other, good); clientErr == nil {
			t.Errorf("%s as server: the client took it", name)
		}
	}
	refused("another authority of the same name", nodeSource(t, newCA(t, "one"), 2).PeerConfig())
	renamed := *ca
	renamed.name = "two" // the same key for another cluster
	refused("another cluster of the same authority", nodeSource(t, &renamed, 2).PeerConfig())
	admin, _ := source(t, ca, func() (Pair, error) { return ca.IssueAdmin("root") })
	refused("an administrator", admin.PeerConfig())
	server, _ := source(t, ca, func() (Pair, error) { return ca.IssueServer([]string{"facet.example"}) })
	refused("the public port's certificate", server.PeerConfig())
	status, _ := source(t, ca, func() (Pair, error) { return ca.IssueStatus(nodeID(2)) })
	refused("a certificate that only looks", status.PeerConfig())
	refused("nobody", &tls.Config{InsecureSkipVerify: true, NextProtos: []string{PeerProtocol}})
	plain := nodeSource(t, ca, 2).PeerConfig()
	plain.NextProtos = nil
	refused("a node without a protocol", plain)
	old := nodeSource(t, ca, 2).PeerConfig()
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	refused("a node with TLS 1.2", old)
	two, _ := source(t, ca, func() (Pair, error) {
		return ca.issue(&x509.Certificate{URIs: []*url.URL{ca.uri(RoleNode, nodeID(3).String()), ca.uri(RoleNode, nodeID(4).String())}}, nil)
	})
	refused("a node with two names", two.PeerConfig())
	self, _ := source(t, ca, func() (Pair, error) { return selfSigned(t, ca.uri(RoleNode, nodeID(2).String())) })
	refused("a self-signed node", self.PeerConfig())
}

// Each client offers one suite of TLS 1.2 only.
func TestClientsGetNoCBC(t *testing.T) {
	t.Parallel()
	ca := newCA(t, "one")
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	public, _ := source(t, ca, func() (Pair, error) { return ca.IssueServer([]string{"facet.example"}) })
	taken := 0
	for _, suite := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
		if !slices.Contains(suite.SupportedVersions, tls.VersionTLS12) {
			continue
		}
		_, serverErr, _ := talk(t, public.ServerConfig(), &tls.Config{
			RootCAs: roots, ServerName: "facet.example", MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{suite.ID},
		})
		if serverErr != nil {
			continue
		}
		taken++
		if !strings.Contains(suite.Name, "GCM") && !strings.Contains(suite.Name, "POLY1305") {
			t.Errorf("%s is taken", suite.Name)
		}
	}
	if taken != 3 { // the certificate's key is ECDSA
		t.Errorf("%d suites are taken, want 3", taken)
	}
}

// selfSigned returns a certificate that no authority signed.
func selfSigned(t *testing.T, name *url.URL) (Pair, error) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	template := &x509.Certificate{URIs: []*url.URL{name}}
	if err := stamp(template, leafLife); err != nil {
		return Pair{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return Pair{}, err
	}
	keyPEM, err := encodeKey(key)
	return Pair{Cert: encodeCert(der), Key: keyPEM}, err
}

func TestAdminPortDistinguishesRoles(t *testing.T) {
	t.Parallel()
	ca := newCA(t, "one")
	own := nodeSource(t, ca, 1)
	port := own.AdminServerConfig()
	admin, _ := source(t, ca, func() (Pair, error) { return ca.IssueAdmin("root") })
	status, _ := source(t, ca, func() (Pair, error) { return ca.IssueStatus(nodeID(3)) })
	for want, s := range map[Role]*Source{RoleAdmin: admin, RoleStatus: status, RoleNode: nodeSource(t, ca, 2)} {
		state, serverErr, clientErr := talk(t, port, s.AdminClientConfig())
		if serverErr != nil || clientErr != nil {
			t.Errorf("%s: server %v, client %v", want, serverErr, clientErr)
			continue
		}
		if got, name, err := own.Holder(state.PeerCertificates[0]); got != want || err != nil {
			t.Errorf("got %s %q, %v, want %s", got, name, err, want)
		}
	}
	other := newCA(t, "one")
	foreign, _ := source(t, other, func() (Pair, error) { return other.IssueAdmin("root") })
	config := foreign.AdminClientConfig()
	config.VerifyConnection = nil // it accepts any server
	if _, serverErr, _ := talk(t, port, config); !errors.Is(serverErr, ErrStranger) {
		t.Errorf("an administrator of another cluster: got %v, want ErrStranger", serverErr)
	}
	if _, serverErr, _ := talk(t, port, &tls.Config{InsecureSkipVerify: true}); serverErr == nil {
		t.Error("a caller without a certificate was taken")
	}
	public, _ := source(t, ca, func() (Pair, error) { return ca.IssueServer([]string{"facet.example"}) })
	if _, _, clientErr := talk(t, public.ServerConfig(), admin.AdminClientConfig()); !errors.Is(clientErr, ErrStranger) {
		t.Errorf("command line at the public port: got %v, want ErrStranger", clientErr)
	}
}

func TestPublicCertificateFitsHosts(t *testing.T) {
	t.Parallel()
	ca := newCA(t, "one")
	s, _ := source(t, ca, func() (Pair, error) { return ca.IssueServer([]string{"facet.example", "10.1.2.3", "::1"}) })
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.CertPEM())
	for host, good := range map[string]bool{"facet.example": true, "10.1.2.3": true, "::1": true, "other.example": false, "10.1.2.4": false} {
		_, serverErr, clientErr := talk(t, s.ServerConfig(), &tls.Config{RootCAs: roots, ServerName: host})
		if (clientErr == nil && serverErr == nil) != good {
			t.Errorf("%s: server %v, client %v, want good %v", host, serverErr, clientErr, good)
		}
	}
}

func TestCertificateIsNotSelfIssued(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"facet", "one"} {
		ca := newCA(t, name)
		f := func(p Pair, err error) {
			t.Helper()
			parsed, err2 := p.parse()
			must.Do(t, errors.Join(err, err2))
			if c := parsed.Leaf; bytes.Equal(c.RawIssuer, c.RawSubject) || len(c.AuthorityKeyId) == 0 {
				t.Errorf("authority %s: got subject %s, issuer %s, authority's key %x", name, c.Subject, c.Issuer, c.AuthorityKeyId)
			}
		}
		f(ca.IssueServer([]string{"facet.example"}))
		f(ca.IssueNode(nodeID(1), nil))
		f(ca.IssueAdmin(name))
	}
}

func TestOldCertificateIsRenewed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ca := newCA(t, "one")
		issue := func() (Pair, error) { return ca.IssueNode(nodeID(1), nil) }
		s, files := source(t, ca, issue)
		ensure := func(want bool) {
			t.Helper()
			if issued, err := Ensure(files, ca, issue); err != nil || issued != want {
				t.Errorf("ensure after %v: got %v %v, want %v", time.Now(), issued, err, want)
			}
		}
		first := s.Leaf().SerialNumber
		ensure(false)
		time.Sleep(leafLife * 6 / 10)
		ensure(false)
		time.Sleep(leafLife / 10)
		ensure(true)
		ensure(false)
		if s.Leaf().SerialNumber.Cmp(first) == 0 {
			t.Error("the source still gives the old certificate")
		}
		ca = newCA(t, "one") // the authority was replaced
		ensure(true)
		ensure(false)
		time.Sleep(9 * 365 * 24 * time.Hour)
		ensure(true)
		time.Sleep(2 * time.Second)
		if got := s.Leaf().NotAfter; got.After(ca.cert.NotAfter) {
			t.Errorf("good until %v, longer than its authority", got)
		}
	})
}

func TestExpiredNodeIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ca := newCA(t, "one")
		old := nodeSource(t, ca, 2)
		time.Sleep(leafLife + time.Hour)
		if _, serverErr, _ := talk(t, nodeSource(t, ca, 1).PeerConfig(), old.PeerConfig()); serverErr == nil {
			t.Error("the server took it")
		}
	})
}

func TestWholeFilesAreTaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ca := newCA(t, "one")
		s, files := source(t, ca, func() (Pair, error) { return ca.IssueNode(nodeID(1), nil) })
		old := s.Leaf()
		must.Do(t, os.WriteFile(files.Cert, []byte("rubbish that is not a certificate"), 0o600))
		time.Sleep(2 * recheckInterval)
		if s.Leaf() != old {
			t.Error("rubbish replaced a good certificate")
		}
		fresh, err := ca.IssueNode(nodeID(1), nil)
		must.Do(t, err)
		must.Do(t, fresh.Save(files.Cert, files.Key))
		time.Sleep(2 * recheckInterval)
		for range 3 {
			if s.Leaf() == old {
				t.Error("the new certificate was not taken")
			}
			time.Sleep(2 * recheckInterval)
		}
	})
}

func saveCA(t *testing.T, ca *CA, certFile, keyFile string) {
	t.Helper()
	p, err := ca.Pair()
	must.Do(t, err)
	must.Do(t, p.Save(certFile, keyFile))
}

func loadCA(t *testing.T, certFile, keyFile string) *CA {
	t.Helper()
	p, err := LoadPair(certFile, keyFile)
	must.Do(t, err)
	ca, err := ParseCA(p)
	must.Do(t, err)
	return ca
}

// The authority reads back as it was saved.
func TestAuthorityFileIsPrivate(t *testing.T) {
	t.Parallel()
	ca := newCA(t, "one")
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "ca.key")
	saveCA(t, ca, certFile, keyFile)
	info, err := os.Stat(keyFile)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key file: %v %v, want mode 0600", info.Mode(), err)
	}
	back := loadCA(t, certFile, keyFile)
	if back.Name() != "one" || !bytes.Equal(back.CertPEM(), ca.CertPEM()) {
		t.Errorf("got authority %q", back.Name())
	}
	if _, serverErr, clientErr := talk(t, nodeSource(t, ca, 1).PeerConfig(), nodeSource(t, back, 2).PeerConfig()); serverErr != nil || clientErr != nil {
		t.Errorf("nodes of the authority before and after: server %v, client %v", serverErr, clientErr)
	}
	p, err := ca.IssueNode(nodeID(1), nil)
	must.Do(t, err)
	must.Do(t, p.Save(certFile, keyFile))
	if _, err := ParseCA(p); err == nil {
		t.Error("a node's certificate was loaded as an authority")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("files left: %v %v", entries, err)
	}
}

func TestNameUnfitForAURIIsRefused(t *testing.T) {
	t.Parallel()
	ca := newCA(t, "one")
	for _, name := range []string{"", "a/b", "UPPER", "a b", "ü", string(bytes.Repeat([]byte("a"), 64))} {
		if _, err := NewCA(name); !errors.Is(err, ErrName) {
			t.Errorf("authority %q: got %v, want ErrName", name, err)
		}
		if _, err := ca.IssueAdmin(name); !errors.Is(err, ErrName) {
			t.Errorf("administrator %q: got %v, want ErrName", name, err)
		}
	}
}

// All authorities of the result have one name.
func FuzzParseAuthorities(f *testing.F) {
	one, err := NewCA("one")
	must.Do(f, err)
	two, err := NewCA("two")
	must.Do(f, err)
	f.Add(one.CertPEM())
	f.Add(append(one.CertPEM(), one.CertPEM()...))
	f.Add(append(one.CertPEM(), two.CertPEM()...))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := ParseAuthorities(b)
		if err != nil {
			return
		}
		for _, c := range list {
			if !c.IsCA || !isName(c.Subject.CommonName) || c.Subject.CommonName != list[0].Subject.CommonName {
				t.Fatalf("took %q without an error", c.Subject.CommonName)
			}
		}
	})
}
