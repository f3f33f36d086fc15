package cluster

import (
	"crypto/rand"

	"facet/internal/id"
)

const apiKeyAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// RandomID returns a random id.
func RandomID() id.UUID {
	var b [16]byte
	MustRandom(b[:])
	return id.Random(b)
}

// RandomText returns n characters of apiKeyAlphabet, each equally likely.
func RandomText(n int) string {
	const fair = 256 - 256%len(apiKeyAlphabet)
	text := make([]byte, 0, n)
	var b [1]byte
	for len(text) < n {
		if MustRandom(b[:]); int(b[0]) < fair {
			text = append(text, apiKeyAlphabet[int(b[0])%len(apiKeyAlphabet)])
		}
	}
	return string(text)
}

// MustRandom fills b with secure random bytes. crypto/rand never fails: it ends the
// process instead.
func MustRandom(b []byte) { _, _ = rand.Read(b) }
