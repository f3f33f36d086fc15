package cert

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"facet/internal/id"
)

// PeerProtocol is the one ALPN name on the port between nodes.
const PeerProtocol = "facet-peer/1"

// httpProtocol is the ALPN name of the public and the admin port.
const httpProtocol = "http/1.1"

// ErrStranger is returned when the other end's certificate does not open this port.
var ErrStranger = errors.New("cert: not a certificate for this port")

// Role is the role of a certificate's holder.
type Role string

// The roles. Nodes of different versions exchange them.
const (
	// RoleNode is a node of the cluster. Its name is the node's id.
	RoleNode Role = "node"
	// RoleAdmin is an administrator.
	RoleAdmin Role = "admin"
	// RoleStatus is the command line on the machine of a node. It may read and not
	// change the cluster. Its name is the node's id.
	RoleStatus Role = "status"
)

// uri returns the URI that names the holder of a certificate.
func (ca *CA) uri(r Role, name string) *url.URL {
	return &url.URL{Scheme: "facet", Host: ca.name, Path: "/" + string(r) + "/" + name}
}

// PeerConfig returns the configuration for both ends of a stream on the port
// between nodes: TLS 1.3, and the other end must be a node of this cluster. Changed
// files are read again. Open streams stay open.
func (s *Source) PeerConfig() *tls.Config {
	c := s.config(PeerProtocol)
	c.MinVersion = tls.VersionTLS13
	c.ClientAuth = tls.RequireAnyClientCert // VerifyConnection checks it
	c.InsecureSkipVerify = true             // host names prove nothing here: VerifyConnection checks chain and URI
	c.VerifyConnection = s.verifier(x509.ExtKeyUsageAny, RoleNode)
	return c
}

// AdminServerConfig returns the configuration for the admin port: TLS 1.3 with the
// node's certificate. Callers must have a certificate of this cluster. Their rights
// depend on their role, which Holder returns.
func (s *Source) AdminServerConfig() *tls.Config {
	c := s.config(httpProtocol)
	c.MinVersion = tls.VersionTLS13
	c.ClientAuth = tls.RequireAnyClientCert
	c.VerifyConnection = s.verifier(x509.ExtKeyUsageClientAuth, RoleAdmin, RoleStatus, RoleNode)
	return c
}

// AdminClientConfig returns the configuration for the command line. The client
// shows the administrator's certificate and accepts any node of this cluster, under
// any host name.
func (s *Source) AdminClientConfig() *tls.Config {
	c := s.config(httpProtocol)
	c.MinVersion = tls.VersionTLS13
	c.InsecureSkipVerify = true // as in PeerConfig
	c.VerifyConnection = s.verifier(x509.ExtKeyUsageServerAuth, RoleNode)
	return c
}

// serverSuites lists the cipher suites of TLS 1.2 on the public port: forward secrecy,
// authenticated encryption, no CBC. TLS 1.3 has no other ones.
var serverSuites = []uint16{
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
	tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
}

// ServerConfig returns the configuration for the public HTTPS port: TLS 1.2 with
// serverSuites, or 1.3, no client certificate.
func (s *Source) ServerConfig() *tls.Config {
	c := s.config(httpProtocol)
	c.MinVersion = tls.VersionTLS12
	c.CipherSuites = serverSuites
	return c
}

// config returns the settings that all ports share. Sessions are not resumed: a
// resumed session would outlive the files that it was checked with.
func (s *Source) config(protocol string) *tls.Config {
	return &tls.Config{
		NextProtos:             []string{protocol},
		SessionTicketsDisabled: true,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return &s.current().own, nil
		},
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &s.current().own, nil
		},
	}
}

// verifier returns a check of the other end: its chain must lead to a trusted
// authority, and it must have one of roles in the same cluster.
func (s *Source) verifier(usage x509.ExtKeyUsage, roles ...Role) func(tls.ConnectionState) error {
	return func(cs tls.ConnectionState) error {
		// A client that offers no ALPN at all passes crypto/tls's own check.
		if cs.NegotiatedProtocol == "" && usage == x509.ExtKeyUsageAny {
			return fmt.Errorf("%w: no protocol agreed", ErrStranger)
		}
		if len(cs.PeerCertificates) == 0 {
			return fmt.Errorf("%w: none shown", ErrStranger)
		}
		_, _, err := s.current().holder(cs.PeerCertificates[0], usage, roles...)
		return err
	}
}

// Holder returns the role and the name of the holder of a client certificate. It
// checks against the authorities that are trusted now, because a connection can
// outlive them.
func (s *Source) Holder(leaf *x509.Certificate) (Role, string, error) {
	return s.current().holder(leaf, x509.ExtKeyUsageClientAuth, RoleAdmin, RoleStatus, RoleNode)
}

// Trusts reports whether an authority that is trusted now has signed leaf. It does
// not check the dates.
func (s *Source) Trusts(leaf *x509.Certificate) bool {
	return slices.ContainsFunc(s.Authorities(), func(c *x509.Certificate) bool { return leaf.CheckSignatureFrom(c) == nil })
}

// holder returns the role and the name of the holder of leaf, which must have one of
// roles.
func (m *material) holder(leaf *x509.Certificate, usage x509.ExtKeyUsage, roles ...Role) (Role, string, error) {
	if m.roots == nil {
		return "", "", fmt.Errorf("%w: no authority to check it with", ErrStranger)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{
		Roots: m.roots, CurrentTime: time.Now(), KeyUsages: []x509.ExtKeyUsage{usage},
	}); err != nil {
		return "", "", fmt.Errorf("%w: %w", ErrStranger, err)
	}
	for _, r := range roles {
		if name, ok := holder(leaf, m.authority, r); ok {
			return r, name, nil
		}
	}
	return "", "", fmt.Errorf("%w: %s is not %v of %s", ErrStranger, leaf.Subject.CommonName, roles, m.authority)
}

// holder returns the name in the URI of c if c has exactly one, of role r and this
// authority.
func holder(c *x509.Certificate, authority string, r Role) (string, bool) {
	if len(c.URIs) != 1 || c.URIs[0].Scheme != "facet" || c.URIs[0].Host != authority {
		return "", false
	}
	name, ok := strings.CutPrefix(c.URIs[0].Path, "/"+string(r)+"/")
	if !ok || !isName(name) {
		return "", false
	}
	if r != RoleAdmin {
		if _, err := id.Parse(name); err != nil {
			return "", false
		}
	}
	return name, true
}

// NodeOf returns the node at the other end of a connection that PeerConfig
// accepted. It returns ErrStranger for any other connection.
func NodeOf(cs tls.ConnectionState) (id.Node, error) {
	if len(cs.PeerCertificates) == 0 {
		return id.Node{}, ErrStranger
	}
	return NodeIn(cs.PeerCertificates[0])
}

// NodeIn returns the node that a certificate names. It returns ErrStranger when the
// certificate names none.
func NodeIn(leaf *x509.Certificate) (id.Node, error) { return nodeIn(leaf, RoleNode) }

// StatusIn returns the node on whose machine a certificate of the role status is
// used. It returns ErrStranger for another certificate.
func StatusIn(leaf *x509.Certificate) (id.Node, error) { return nodeIn(leaf, RoleStatus) }

func nodeIn(leaf *x509.Certificate, r Role) (id.Node, error) {
	if len(leaf.URIs) != 1 {
		return id.Node{}, ErrStranger
	}
	name, ok := holder(leaf, leaf.URIs[0].Host, r)
	if !ok {
		return id.Node{}, ErrStranger
	}
	u, err := id.Parse(name)
	return id.Node{UUID: u}, err
}
