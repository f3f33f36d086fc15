package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
)

// KeyBytes is the length of a key and of a master's secret.
const KeyBytes = 32

// Overhead is the number of bytes that sealing adds: a nonce of 12 and a tag of 16.
const Overhead = 12 + 16

var (
	// ErrKey is returned when secret bytes don't have the length of a key.
	ErrKey = errors.New("seal: a key has 32 bytes")
	// ErrOpen is returned for a sealed text that was changed, was sealed with another key, or
	// belongs elsewhere (its additional data differ).
	ErrOpen = errors.New("seal: can't be opened")
)

// Key seals and opens with AES-256-GCM. One key is good for 2³² seals (NIST SP
// 800-38D, §8.3, random nonces). It also names texts without revealing them (MAC). It is safe for
// concurrent use.
type Key struct {
	aead  cipher.AEAD
	names []byte // the key of MAC, derived from the secret
}

// NewKey returns the key of 32 secret bytes, which it does not keep. For another length it returns
// an error that wraps ErrKey.
func NewKey(secret []byte) (*Key, error) {
	if len(secret) != KeyBytes {
		return nil, fmt.Errorf("%w, got %d", ErrKey, len(secret))
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	names, err := hkdf.Key(sha256.New, secret, nil, purposeNames, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	return &Key{aead, names}, nil
}

// purposeNames derives the key of MAC. Stored names depend on it.
const purposeNames = "facet/names/1"

// MAC returns the HMAC-SHA-256 of data. Nobody without the key can compute or reverse it. It does
// not change when another master wraps the secret.
func (k *Key) MAC(data []byte) [sha256.Size]byte {
	mac := hmac.New(sha256.New, k.names)
	mac.Write(data)
	return [sha256.Size]byte(mac.Sum(nil))
}

// Seal returns nonce, ciphertext and tag of plain. It opens only with the same aad.
func (k *Key) Seal(plain, aad []byte) []byte { return k.aead.Seal(nil, nil, plain, aad) }

// Open returns the plain text of sealed; the error wraps ErrOpen.
func (k *Key) Open(sealed, aad []byte) ([]byte, error) { return k.OpenTo(nil, sealed, aad) }

// OpenTo is Open, but appends the plain text to dst. After an error, the bytes between dst and its
// capacity are undefined.
func (k *Key) OpenTo(dst, sealed, aad []byte) ([]byte, error) {
	plain, err := k.aead.Open(dst, nil, sealed, aad)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOpen, err)
	}
	return plain, nil
}
