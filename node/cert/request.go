package cert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"

	"facet/internal/id"
)

const blockRequest = "CERTIFICATE REQUEST"

// fingerprintBytes is the part of a hash that people compare.
const fingerprintBytes = 6

// ErrRequest is returned for a request for a certificate that can't be read, or
// that its key did not sign.
var ErrRequest = errors.New("cert: not a request for a certificate")

// Request returns a new key and a request for its certificate (PKCS #10). The key
// never leaves the machine that uses it. The request names nothing but the key: the
// authority decides what the certificate says.
func Request() (request, key []byte, err error) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make certificate key: %w", err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, k)
	if err != nil {
		return nil, nil, fmt.Errorf("request a certificate: %w", err)
	}
	key, err = encodeKey(k)
	return pem.EncodeToMemory(&pem.Block{Type: blockRequest, Bytes: der}), key, err
}

// parseRequest returns the key in a request. The error wraps ErrRequest.
func parseRequest(request []byte) (*ecdsa.PublicKey, error) {
	block, _ := pem.Decode(request)
	if len(request) > pemBytesMax || block == nil || block.Type != blockRequest {
		return nil, ErrRequest
	}
	r, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	if err := r.CheckSignature(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	key, ok := r.PublicKey.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, fmt.Errorf("%w: it wants a P-256 key", ErrRequest)
	}
	return key, nil
}

// SignNode signs the certificate of IssueNode for the key of a request. The error
// wraps ErrRequest when the request is malformed.
func (ca *CA) SignNode(request []byte, node id.Node, hosts []string) ([]byte, error) {
	key, err := parseRequest(request)
	if err != nil {
		return nil, err
	}
	return ca.sign(ca.nodeTemplate(node), hosts, key)
}

// SignServer signs the certificate of IssueServer for the key of a request. The
// error wraps ErrRequest when the request is malformed.
func (ca *CA) SignServer(request []byte, hosts []string) ([]byte, error) {
	if len(hosts) == 0 {
		return nil, errNoHost
	}
	key, err := parseRequest(request)
	if err != nil {
		return nil, err
	}
	return ca.sign(serverTemplate(), hosts, key)
}

// SignStatus signs the certificate of IssueStatus for the key of a request. The
// error wraps ErrRequest when the request is malformed.
func (ca *CA) SignStatus(request []byte, node id.Node) ([]byte, error) {
	key, err := parseRequest(request)
	if err != nil {
		return nil, err
	}
	return ca.sign(ca.statusTemplate(node), nil, key)
}

// Successor returns an authority of the same name with another key, which will
// replace ca. Each of the two then lists the other in its CertPEM.
func (ca *CA) Successor() (*CA, error) {
	next, err := NewCA(ca.name)
	if err != nil {
		return nil, err
	}
	next.others = []*x509.Certificate{ca.cert}
	ca.others = []*x509.Certificate{next.cert}
	return next, nil
}

// Alone returns the authority without other trusted ones.
func (ca *CA) Alone() *CA { return &CA{name: ca.name, cert: ca.cert, key: ca.key} }

// Trusted returns the number of authorities in CertPEM: 1, or 2 while one replaces
// the other.
func (ca *CA) Trusted() int { return 1 + len(ca.others) }

// Certificate returns the authority's own certificate, for its dates.
func (ca *CA) Certificate() *x509.Certificate { return ca.cert }

// Hash returns the SHA-256 of a certificate (DER). It identifies an authority.
func Hash(c *x509.Certificate) [sha256.Size]byte { return sha256.Sum256(c.Raw) }

// Fingerprint returns the first bytes of Hash, for people.
func Fingerprint(c *x509.Certificate) string {
	h := Hash(c)
	return hex.EncodeToString(h[:fingerprintBytes])
}

// Hosts returns the names and IP addresses in a certificate, sorted.
func Hosts(c *x509.Certificate) []string {
	hosts := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		hosts = append(hosts, ip.String())
	}
	slices.Sort(hosts)
	return hosts
}

// Check returns the certificate of a pair. It returns an error unless certificate
// and key belong together and one of authorities has issued the certificate for
// that use, as of now.
func Check(p Pair, authorities []*x509.Certificate, use x509.ExtKeyUsage) (*x509.Certificate, error) {
	parsed, err := p.parse()
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	for _, c := range authorities {
		roots.AddCert(c)
	}
	_, err = parsed.Leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{use}})
	return parsed.Leaf, err
}

// ParseLeaf returns the first certificate of some PEM.
func ParseLeaf(b []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(b)
	if len(b) > pemBytesMax || block == nil || block.Type != blockCert {
		return nil, errors.New("no certificate in it")
	}
	return x509.ParseCertificate(block.Bytes)
}
