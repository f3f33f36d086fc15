package cert

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// Types of PEM blocks (RFC 7468).
const (
	blockCert = "CERTIFICATE"
	blockKey  = "PRIVATE KEY"
)

// Pair is a certificate, or a chain of them, and its key, as PEM. The key is
// PKCS #8 and never logged.
type Pair struct {
	Cert []byte
	Key  []byte
}

// Files names the files of a certificate: the authorities' certificates, against
// which others are checked, and the own certificate and key.
type Files struct {
	CA   string // may be empty for the public port, which checks nobody
	Cert string
	Key  string
}

// Save writes p, each file by rename. The key comes first and has mode 0600: a
// reader that sees the new certificate finds its key.
func (p Pair) Save(certFile, keyFile string) error {
	if err := writeFile(keyFile, p.Key, 0o600); err != nil {
		return fmt.Errorf("save key: %w", err)
	}
	if err := writeFile(certFile, p.Cert, 0o644); err != nil {
		return fmt.Errorf("save certificate: %w", err)
	}
	return nil
}

// LoadPair reads what Save wrote, and checks that certificate and key belong together.
func LoadPair(certFile, keyFile string) (Pair, error) {
	var p Pair
	var err error
	if p.Cert, err = ReadFile(certFile); err != nil {
		return Pair{}, fmt.Errorf("load certificate: %w", err)
	}
	if p.Key, err = ReadFile(keyFile); err != nil {
		return Pair{}, fmt.Errorf("load key: %w", err)
	}
	if _, err := p.parse(); err != nil {
		return Pair{}, fmt.Errorf("load certificate %s: %w", filepath.Base(certFile), err)
	}
	return p, nil
}

// parse returns p in the form of the TLS library, with Leaf set.
func (p Pair) parse() (tls.Certificate, error) { return tls.X509KeyPair(p.Cert, p.Key) }

// Pair returns the authority's certificates and its key.
func (ca *CA) Pair() (Pair, error) {
	key, err := encodeKey(ca.key)
	return Pair{Cert: ca.CertPEM(), Key: key}, err
}

// ParseCA returns the authority whose Pair is p, and the other trusted authorities.
func ParseCA(p Pair) (*CA, error) {
	parsed, err := p.parse()
	if err != nil {
		return nil, fmt.Errorf("load authority: %w", err)
	}
	key, ok := parsed.PrivateKey.(*ecdsa.PrivateKey)
	if !ok || !parsed.Leaf.IsCA {
		return nil, errors.New("load authority: not an ECDSA certificate authority")
	}
	name := parsed.Leaf.Subject.CommonName
	if !isName(name) {
		return nil, fmt.Errorf("load authority: %w", ErrName)
	}
	ca := &CA{name: name, cert: parsed.Leaf, key: key}
	for _, der := range parsed.Certificate[1:] {
		other, err := x509.ParseCertificate(der)
		if err != nil || !other.IsCA || other.Subject.CommonName != name {
			return nil, errors.New("load authority: what stands behind the first certificate is no authority of the same name")
		}
		ca.others = append(ca.others, other)
	}
	return ca, nil
}

// Ensure checks that files contain a certificate that ca signed and that has at
// least a third of its life left. Otherwise it saves the pair that issue returns,
// and ca's certificates as files.CA unless that is empty. It reports whether it
// saved. A Source that reads the files takes the new ones by itself.
func Ensure(files Files, ca *CA, issue func() (Pair, error)) (bool, error) {
	if files.CA != "" {
		if have, err := ReadFile(files.CA); err != nil || !bytes.Equal(have, ca.CertPEM()) {
			if err := writeFile(files.CA, ca.CertPEM(), 0o644); err != nil {
				return false, fmt.Errorf("save authority certificate: %w", err)
			}
		}
	}
	if p, err := LoadPair(files.Cert, files.Key); err == nil {
		if parsed, err := p.parse(); err == nil && ca.signed(parsed.Leaf) && !Expiring(parsed.Leaf) {
			return false, nil
		}
	}
	p, err := issue()
	if err != nil {
		return false, fmt.Errorf("renew certificate %s: %w", filepath.Base(files.Cert), err)
	}
	return true, p.Save(files.Cert, files.Key)
}

// Expiring reports whether less than a third of c's life is left, or its life has
// not started.
func Expiring(c *x509.Certificate) bool {
	now := time.Now()
	return now.Before(c.NotBefore) || c.NotAfter.Sub(now) < c.NotAfter.Sub(c.NotBefore)/3
}

func encodeCert(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: blockCert, Bytes: der})
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: blockKey, Bytes: der}), nil
}

// ReadFile reads a file of PEM blocks. More than 64 KiB are an error.
func ReadFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, pemBytesMax+1))
	if err != nil {
		return nil, err
	}
	if len(b) > pemBytesMax {
		return nil, fmt.Errorf("read %s: more than %d bytes", filepath.Base(name), pemBytesMax)
	}
	return b, nil
}

// writeFile writes beside name, syncs and renames, so that a reader sees either the
// old bytes or the new ones.
func writeFile(name string, b []byte, mode os.FileMode) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), ".new-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(b)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
