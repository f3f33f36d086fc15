package sigv4

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"sync"
)

// signingKey is the last key of the HMAC chain over date, region, service and
// terminator.
type signingKey [sha256.Size]byte

// scope is the scope of a signing key.
type scope struct {
	dialect              Dialect
	day, region, service string
}

// String returns the scope as the credential and the string to sign contain it.
func (s scope) String() string {
	return s.day + "/" + s.region + "/" + s.service + "/" + s.dialect.terminator()
}

// derive computes the signing key of secret for s.
func (s scope) derive(secret string) signingKey {
	key := mac([]byte(s.dialect.prefix()+secret), s.day)
	key = mac(key[:], s.region)
	key = mac(key[:], s.service)
	return mac(key[:], s.dialect.terminator())
}

// sign returns the hexadecimal signature of a canonical request's hash.
func (k signingKey) sign(s scope, date, canonicalHash string) string {
	sum := mac(k[:], s.dialect.token()+"\n"+date+"\n"+s.String()+"\n"+canonicalHash)
	return hex.EncodeToString(sum[:])
}

// mac returns the HMAC-SHA256 of text under key.
func mac(key []byte, text string) signingKey {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return signingKey(h.Sum(nil))
}

// keyCache caches derived signing keys by secret and scope, so that most requests
// cost one HMAC instead of five. The secret is part of the cache key, so a changed
// or revoked secret never finds an entry. Two generations bound the cache: when
// young is full it replaces old, and the entries of old are dropped.
type keyCache struct {
	mu         sync.Mutex // guards young and old
	young, old map[cacheKey]signingKey
}

// cacheKey is a scope and the hash of a secret, so that the cache contains no
// secret itself.
type cacheKey struct {
	secret [sha256.Size]byte
	scope  scope
}

// derive returns the signing key of secret for s.
func (c *keyCache) derive(secret string, s scope) signingKey {
	k := cacheKey{sha256.Sum256([]byte(secret)), s}
	c.mu.Lock()
	derived, ok := c.young[k]
	if !ok {
		derived, ok = c.old[k]
	}
	c.mu.Unlock()
	if ok {
		return derived
	}
	derived = s.derive(secret)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.young == nil || len(c.young) >= cachedKeysMax {
		c.young, c.old = make(map[cacheKey]signingKey), c.young
	}
	c.young[k] = derived
	return derived
}
