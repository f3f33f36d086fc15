package seal

import (
	"bytes"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"sync/atomic"
)

// A wrapped secret begins with a version and four bytes that name the master.
const (
	wrapVersion   = 1
	masterIDBytes = 4
	wrapHeadBytes = 1 + masterIDBytes
)

// Purposes of HKDF. A caller's purpose gets a prefix, so it never equals another.
const (
	purposeWrap = "facet/wrap/1"
	purposeID   = "facet/id/1"
	purposeMAC  = "facet/mac/1/"
)

// Master is the cluster's key, or a ring of keys during a rotation: the first wraps and
// authenticates, all unwrap. It is safe for concurrent use.
type Master struct{ ring atomic.Pointer[[]*masterKey] }

// masterKey is one key of the ring. It is never changed.
type masterKey struct {
	secret []byte
	wrap   *Key
	head   [wrapHeadBytes]byte
}

// NewMaster returns a master with a secret of 32 bytes, and with older secrets that still unwrap.
// For another length it returns an error that wraps ErrKey.
func NewMaster(secret []byte, older ...[]byte) (*Master, error) {
	m := &Master{}
	return m, m.Change(append([][]byte{secret}, older...))
}

// Change replaces the ring for all callers at once; its first key wraps from now on. An error,
// which wraps ErrKey, leaves the ring unchanged.
func (m *Master) Change(secrets [][]byte) error {
	ring := make([]*masterKey, 0, len(secrets))
	for _, secret := range secrets {
		k, err := newMasterKey(secret)
		if err != nil {
			return err
		}
		ring = append(ring, k)
	}
	if len(ring) == 0 {
		return fmt.Errorf("%w, got none", ErrKey)
	}
	m.ring.Store(&ring)
	return nil
}

func newMasterKey(secret []byte) (*masterKey, error) {
	if len(secret) != KeyBytes {
		return nil, fmt.Errorf("%w, got %d", ErrKey, len(secret))
	}
	k := &masterKey{secret: bytes.Clone(secret)}
	wrap, err := NewKey(k.derive(purposeWrap, KeyBytes))
	if err != nil {
		return nil, err
	}
	k.wrap = wrap
	k.head[0] = wrapVersion
	copy(k.head[1:], k.derive(purposeID, masterIDBytes))
	return k, nil
}

func (m *Master) first() *masterKey { return (*m.ring.Load())[0] }

// Wrap seals a secret (a gallery's key, an access key's secret) with the first key,
// bound to aad.
func (m *Master) Wrap(secret, aad []byte) []byte {
	k := m.first()
	return append(bytes.Clone(k.head[:]), k.wrap.Seal(secret, aad)...)
}

// Unwrap returns the secret in wrapped. The error wraps ErrOpen and says whether another master
// wrapped it.
func (m *Master) Unwrap(wrapped, aad []byte) ([]byte, error) {
	switch {
	case len(wrapped) < wrapHeadBytes+Overhead:
		return nil, fmt.Errorf("%w: %d bytes are too few", ErrOpen, len(wrapped))
	case wrapped[0] != wrapVersion:
		return nil, fmt.Errorf("%w: wrapped in version %d, want %d", ErrOpen, wrapped[0], wrapVersion)
	}
	err := fmt.Errorf("%w: another master key wrapped it", ErrOpen)
	for _, k := range *m.ring.Load() {
		if !bytes.Equal(wrapped[:wrapHeadBytes], k.head[:]) {
			continue
		}
		var plain []byte
		if plain, err = k.wrap.Open(wrapped[wrapHeadBytes:], aad); err == nil {
			return plain, nil
		}
	}
	return nil, err
}

// Head returns the bytes that start every secret wrapped by the first key.
func (m *Master) Head() []byte { return bytes.Clone(m.first().head[:]) }

// Current reports whether the first key of the ring wrapped the secret.
func (m *Master) Current(wrapped []byte) bool { return bytes.HasPrefix(wrapped, m.first().head[:]) }

// MAC authenticates data for a purpose with the first key (HMAC-SHA-256). Equal data have equal
// MACs under one purpose only. Nobody without the master can compute or reverse a MAC.
func (m *Master) MAC(purpose string, data []byte) [sha256.Size]byte {
	return m.first().mac(purpose, data)
}

// MACs returns the MAC under each key of the ring, the first key's first. One of them finds data
// stored under an older key.
func (m *Master) MACs(purpose string, data []byte) [][sha256.Size]byte {
	var list [][sha256.Size]byte
	for _, k := range *m.ring.Load() {
		list = append(list, k.mac(purpose, data))
	}
	return list
}

func (k *masterKey) mac(purpose string, data []byte) [sha256.Size]byte {
	mac := hmac.New(sha256.New, k.derive(purposeMAC+purpose, sha256.Size))
	mac.Write(data)
	return [sha256.Size]byte(mac.Sum(nil))
}

func (k *masterKey) derive(purpose string, n int) []byte {
	b, err := hkdf.Key(sha256.New, k.secret, nil, purpose, n)
	if err != nil {
		panic("bug: derive a key: " + err.Error())
	}
	return b
}
