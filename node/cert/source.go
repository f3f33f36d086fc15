package cert

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// recheckInterval is the least time between two checks whether files changed.
const recheckInterval = time.Second

// Source reads a certificate's files and reads them again when they change. It
// checks at handshakes, so it needs no goroutine and no closing. It is safe for
// concurrent use.
type Source struct {
	files Files
	log   *slog.Logger

	// mu guards now, stamps and checked. It is held while the files are read, at
	// most once a second.
	mu      sync.Mutex
	now     *material
	stamps  [3]fileStamp
	checked time.Time
}

// material is the result of one reading of the files. It is never changed.
type material struct {
	own       tls.Certificate
	roots     *x509.CertPool // nil: no check of the other end
	trusted   []*x509.Certificate
	rootsEnd  time.Time // of the root that lasts longest
	authority string
}

// fileStamp is the size and time of a file. A changed file has another stamp.
type fileStamp struct {
	size     int64
	modified time.Time
}

// Load reads files. It takes later changes when certificate and key belong
// together. Until then it keeps the old ones and logs a warning.
func Load(files Files, log *slog.Logger) (*Source, error) {
	s := &Source{files: files, log: log, stamps: files.stamps(), checked: time.Now()}
	m, err := files.read()
	if err != nil {
		return nil, err
	}
	s.now = m
	return s, nil
}

// Leaf returns the present certificate, for its names and dates.
func (s *Source) Leaf() *x509.Certificate { return s.current().own.Leaf }

// AuthorityEnd returns when the authority's certificate ends; of two authorities,
// the later end. It returns the zero time without an authority.
func (s *Source) AuthorityEnd() time.Time { return s.current().rootsEnd }

// Authorities returns the certificates of the authorities that are trusted now: two
// while one replaces the other, none without an authority.
func (s *Source) Authorities() []*x509.Certificate { return s.current().trusted }

// Reload makes the next handshake check the files, instead of one up to a second
// later.
func (s *Source) Reload() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checked = time.Time{}
}

// current returns the newest valid reading of the files.
func (s *Source) current() *material {
	s.mu.Lock()
	defer s.mu.Unlock()
	if since := time.Since(s.checked); since >= 0 && since < recheckInterval {
		return s.now
	}
	s.checked = time.Now()
	stamps := s.files.stamps()
	if stamps == s.stamps {
		return s.now
	}
	m, err := s.files.read()
	if err != nil {
		s.log.Warn("changed certificate files not taken", "err", err)
		return s.now // tried again in a second: a half-written set becomes whole
	}
	s.now, s.stamps = m, stamps
	s.log.Info("certificate taken from changed files", "until", m.own.Leaf.NotAfter)
	return m
}

// stamps returns the stamp of each file. A missing file has the zero stamp.
func (f Files) stamps() [3]fileStamp {
	var out [3]fileStamp
	for i, name := range []string{f.CA, f.Cert, f.Key} {
		if info, err := os.Stat(name); err == nil {
			out[i] = fileStamp{info.Size(), info.ModTime()}
		}
	}
	return out
}

// read reads all files.
func (f Files) read() (*material, error) {
	p, err := LoadPair(f.Cert, f.Key)
	if err != nil {
		return nil, err
	}
	m := &material{}
	if m.own, err = p.parse(); err != nil {
		return nil, fmt.Errorf("load certificate: %w", err)
	}
	if f.CA == "" {
		return m, nil
	}
	b, err := ReadFile(f.CA)
	if err != nil {
		return nil, fmt.Errorf("load authority certificate: %w", err)
	}
	if m.trusted, err = ParseAuthorities(b); err != nil {
		return nil, fmt.Errorf("load authority certificate: %w", err)
	}
	m.roots, m.authority = x509.NewCertPool(), m.trusted[0].Subject.CommonName
	for _, c := range m.trusted {
		m.roots.AddCert(c)
		if c.NotAfter.After(m.rootsEnd) {
			m.rootsEnd = c.NotAfter
		}
	}
	return m, nil
}

// ParseAuthorities parses one or more authority certificates of one name. There are
// two while one authority replaces the other.
func ParseAuthorities(b []byte) ([]*x509.Certificate, error) {
	if len(b) > pemBytesMax {
		return nil, fmt.Errorf("more than %d bytes", pemBytesMax)
	}
	var list []*x509.Certificate
	for {
		var block *pem.Block
		if block, b = pem.Decode(b); block == nil {
			break
		}
		if block.Type != blockCert {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		if !c.IsCA || !isName(c.Subject.CommonName) {
			return nil, fmt.Errorf("%.80q is not a cluster's authority", c.Subject.CommonName)
		}
		if len(list) > 0 && list[0].Subject.CommonName != c.Subject.CommonName {
			return nil, errors.New("authorities of two clusters")
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		return nil, errors.New("no certificate in it")
	}
	return list, nil
}
