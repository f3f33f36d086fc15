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

// macFunc computes a MAC of text under key. It is mac, except in tests that count.
type macFunc func(key []byte, text string) signingKey

// derive computes the signing key of secret for s.
func (s scope) derive(mac macFunc, secret string) signingKey {
	key := mac([]byte(s.dialect.prefix()+secret), s.day)
	key = mac(key[:], s.region)
	key = mac(key[:], s.service)
	return mac(key[:], s.dialect.terminator())
}

// sign returns the hexadecimal signature of a canonical request's hash.
func (k signingKey) sign(mac macFunc, s scope, date, canonicalHash string) string {
	sum := mac(k[:], s.stringToSign(date, canonicalHash))
	return hex.EncodeToString(sum[:])
}

// stringToSign returns the text that the last MAC covers.
func (s scope) stringToSign(date, canonicalHash string) string {
	return s.dialect.token() + "\n" + date + "\n" + s.String() + "\n" + canonicalHash
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

// nameOf returns the name of secret's signing key for s in the cache.
func nameOf(secret string, s scope) cacheKey { return cacheKey{sha256.Sum256([]byte(secret)), s} }

// find returns the signing key with this name, if it is in the cache.
func (c *keyCache) find(name cacheKey) (signingKey, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if key, ok := c.young[name]; ok {
		return key, true
	}
	key, ok := c.old[name]
	return key, ok
}

// add puts a signing key that has proven right into the cache.
func (c *keyCache) add(name cacheKey, key signingKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.young == nil || len(c.young) >= cachedKeysMax {
		c.young, c.old = make(map[cacheKey]signingKey), c.young
	}
	c.young[name] = key
}
