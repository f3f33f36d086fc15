package cert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"time"

	"facet/internal/id"
)

// Lifetimes and bounds of certificates.
const (
	caLife    = 10 * 365 * 24 * time.Hour
	leafLife  = 365 * 24 * time.Hour
	backdated = time.Hour // clocks of nodes differ, and a new certificate must be valid at once

	nameBytesMax = 63 // of the name of an authority or administrator
	hostsMax     = 64 // names and addresses in one certificate
	pemBytesMax  = 64 << 10
)

// ErrName is returned for a name that can't be part of a certificate's URI.
var ErrName = errors.New("cert: a name has 1 to 63 of a-z, 0-9, '-' and '.'")

// CA is the cluster's certificate authority: an ECDSA P-256 key and a
// self-signed certificate of ten years. It is safe for concurrent use.
type CA struct {
	name string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	// others are the trusted authorities of the same name, while one authority
	// replaces another.
	others []*x509.Certificate
}

// NewCA returns a new authority. name identifies the cluster in the certificates
// that it issues. Two clusters that share an authority's key must have different
// names.
func NewCA(name string) (*CA, error) {
	if !isName(name) {
		return nil, fmt.Errorf("%w: got %.80q", ErrName, name)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make authority key: %w", err)
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	if err := stamp(template, caLife); err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("sign authority certificate: %w", err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read back authority certificate: %w", err)
	}
	return &CA{name: name, cert: parsed, key: key}, nil
}

// Name returns the authority's name.
func (ca *CA) Name() string { return ca.name }

// CertPEM returns the authority's certificate, followed by those of the other
// trusted authorities. Every node has them.
func (ca *CA) CertPEM() []byte {
	b := encodeCert(ca.cert.Raw)
	for _, c := range ca.others {
		b = append(b, encodeCert(c.Raw)...)
	}
	return b
}

// IssueNode issues the certificate with which node speaks to other nodes, both as
// client and as server. hosts are the names and IP addresses of its admin port.
func (ca *CA) IssueNode(node id.Node, hosts []string) (Pair, error) {
	return ca.issue(ca.nodeTemplate(node), hosts)
}

func (ca *CA) nodeTemplate(node id.Node) *x509.Certificate {
	return &x509.Certificate{
		Subject:     pkix.Name{CommonName: "node " + node.String()},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		URIs:        []*url.URL{ca.uri(RoleNode, node.String())},
	}
}

// IssueServer issues the certificate of the public HTTPS port. hosts are the names
// and IP addresses that clients call, at least one.
func (ca *CA) IssueServer(hosts []string) (Pair, error) {
	if len(hosts) == 0 {
		return Pair{}, errNoHost
	}
	return ca.issue(serverTemplate(), hosts)
}

var errNoHost = errors.New("issue server certificate: it needs a host")

// serverTemplate returns a certificate whose name no authority can have (isName).
// OpenSSL, and so curl and Python, takes a certificate with equal subject and
// issuer for a self-signed one and refuses it.
func serverTemplate() *x509.Certificate {
	return &x509.Certificate{
		Subject:     pkix.Name{CommonName: "facet server"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
}

// IssueAdmin issues the client certificate of an administrator's command line.
func (ca *CA) IssueAdmin(name string) (Pair, error) {
	if !isName(name) {
		return Pair{}, fmt.Errorf("%w: got %.80q", ErrName, name)
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "admin " + name},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		URIs:        []*url.URL{ca.uri(RoleAdmin, name)},
	}
	return ca.issue(template, nil)
}

// IssueStatus issues the client certificate with which the command line on node's
// machine reads the state of the cluster.
func (ca *CA) IssueStatus(node id.Node) (Pair, error) {
	return ca.issue(ca.statusTemplate(node), nil)
}

func (ca *CA) statusTemplate(node id.Node) *x509.Certificate {
	return &x509.Certificate{
		Subject:     pkix.Name{CommonName: "status " + node.String()},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		URIs:        []*url.URL{ca.uri(RoleStatus, node.String())},
	}
}

// issue makes a key and signs template for it. The certificate is valid for one
// year, or for the rest of the authority's life if that is shorter.
func (ca *CA) issue(template *x509.Certificate, hosts []string) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("make certificate key: %w", err)
	}
	certPEM, err := ca.sign(template, hosts, key.Public())
	if err != nil {
		return Pair{}, err
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{Cert: certPEM, Key: keyPEM}, nil
}

// sign signs template for a key, for as long as issue says.
func (ca *CA) sign(template *x509.Certificate, hosts []string, key any) ([]byte, error) {
	if len(hosts) > hostsMax {
		return nil, fmt.Errorf("issue certificate: %d hosts, at most %d", len(hosts), hostsMax)
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.BasicConstraintsValid = true
	if err := stamp(template, leafLife); err != nil {
		return nil, err
	}
	if template.NotAfter.After(ca.cert.NotAfter) {
		template.NotAfter = ca.cert.NotAfter
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, key, ca.key)
	if err != nil {
		return nil, fmt.Errorf("sign certificate of %s: %w", template.Subject.CommonName, err)
	}
	return encodeCert(der), nil
}

// signed reports whether this authority has signed c.
func (ca *CA) signed(c *x509.Certificate) bool { return c.CheckSignatureFrom(ca.cert) == nil }

// stamp sets template's serial number to a random one (RFC 5280, §4.1.2.2). Its
// life started an hour ago.
func stamp(template *x509.Certificate, life time.Duration) error {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return fmt.Errorf("make serial number: %w", err)
	}
	now := time.Now()
	template.SerialNumber = serial.Add(serial, big.NewInt(1))
	template.NotBefore = now.Add(-backdated)
	template.NotAfter = now.Add(life)
	return nil
}

// isName reports whether s can be the host of a URI, or a part of its path, as it
// is.
func isName(s string) bool {
	if s == "" || len(s) > nameBytesMax {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '.' {
			return false
		}
	}
	return true
}
