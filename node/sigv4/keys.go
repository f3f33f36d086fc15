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

// scope is what a signing key is derived for.
type scope struct {
	dialect              Dialect
	day, region, service string
}

// String gives the scope as it stands in the credential and the string to sign.
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

// sign gives the hexadecimal signature of a canonical request's hash.
func (k signingKey) sign(s scope, date, canonicalHash string) string {
	sum := mac(k[:], s.dialect.token()+"\n"+date+"\n"+s.String()+"\n"+canonicalHash)
	return hex.EncodeToString(sum[:])
}

// mac is HMAC-SHA256 of text under key.
func mac(key []byte, text string) signingKey {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return signingKey(h.Sum(nil))
}

// keyCache remembers derived signing keys by secret and scope, so that most
// requests cost one HMAC instead of five. Since the secret is part of the key of
// an entry, a changed or revoked secret never finds one. Two generations bound
// it: a full young one becomes the old one, and what was old is dropped.
type keyCache struct {
	mu         sync.Mutex // guards both maps
	young, old map[cacheKey]signingKey
}

// cacheKey is the secret's hash, so that the cache holds no secret itself, and
// the scope.
type cacheKey struct {
	secret [sha256.Size]byte
	scope  scope
}

// derive gives the signing key of secret for s.
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
