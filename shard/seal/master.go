package seal

import (
	"bytes"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
)

// Wrapped secrets begin with a version and four bytes that name the master.
const (
	wrapVersion   = 1
	masterIDBytes = 4
	wrapHeadBytes = 1 + masterIDBytes
)

// Purposes of HKDF; a caller's own are prefixed, so that none can be equal.
const (
	purposeWrap = "facet/wrap/1"
	purposeID   = "facet/id/1"
	purposeMAC  = "facet/mac/1/"
)

// Master is the cluster's key. It is safe for concurrent use.
type Master struct {
	secret []byte
	wrap   *Key
	head   [wrapHeadBytes]byte
}

// NewMaster makes a master of 32 secret bytes; another length wraps ErrKey.
func NewMaster(secret []byte) (*Master, error) {
	if len(secret) != KeyBytes {
		return nil, fmt.Errorf("%w, got %d", ErrKey, len(secret))
	}
	m := &Master{secret: bytes.Clone(secret)}
	wrap, err := NewKey(m.derive(purposeWrap, KeyBytes))
	if err != nil {
		return nil, err
	}
	m.wrap = wrap
	m.head[0] = wrapVersion
	copy(m.head[1:], m.derive(purposeID, masterIDBytes))
	return m, nil
}

// Wrap seals a secret (a gallery's key, an access key's secret) with the master,
// bound to aad.
func (m *Master) Wrap(secret, aad []byte) []byte {
	return append(m.head[:], m.wrap.Seal(secret, aad)...)
}

// Unwrap gives the secret of wrapped. The error wraps ErrOpen and says whether
// another master wrapped it.
func (m *Master) Unwrap(wrapped, aad []byte) ([]byte, error) {
	switch {
	case len(wrapped) < wrapHeadBytes+Overhead:
		return nil, fmt.Errorf("%w: %d bytes are too few", ErrOpen, len(wrapped))
	case wrapped[0] != wrapVersion:
		return nil, fmt.Errorf("%w: wrapped in version %d, want %d", ErrOpen, wrapped[0], wrapVersion)
	case !bytes.Equal(wrapped[:wrapHeadBytes], m.head[:]):
		return nil, fmt.Errorf("%w: another master key wrapped it", ErrOpen)
	}
	return m.wrap.Open(wrapped[wrapHeadBytes:], aad)
}

// MAC authenticates data for a purpose (HMAC-SHA-256): equal data have equal MACs
// under one purpose only, and nobody without the master can compute or reverse
// them.
func (m *Master) MAC(purpose string, data []byte) [sha256.Size]byte {
	mac := hmac.New(sha256.New, m.derive(purposeMAC+purpose, sha256.Size))
	mac.Write(data)
	return [sha256.Size]byte(mac.Sum(nil))
}

func (m *Master) derive(purpose string, n int) []byte {
	b, err := hkdf.Key(sha256.New, m.secret, nil, purpose, n)
	if err != nil {
		panic("bug: derive a key: " + err.Error())
	}
	return b
}
