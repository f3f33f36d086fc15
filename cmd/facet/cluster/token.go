package cluster

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"time"
)

const (
	tokenPrefix   = "facet-join-"
	tokenBytesMax = 1 << 10
	secretBytes   = 16
	// tokenFixed is the number of bytes before the addresses: the expiry in seconds
	// since 1970, the secret and the authority's hash.
	tokenFixed = 8 + secretBytes + sha256.Size
	crcBytes   = 4

	addressesMax = 8
)

// ErrToken is returned for a text that is not a token, or not the whole of one.
var ErrToken = errors.New("this is not the whole token: copy all of it, from " + tokenPrefix + " on")

// Token lets a machine join. It contains the addresses of the inviting machine, the
// hash of the authority that identifies it, and a secret that proves the
// invitation.
type Token struct {
	// Addresses are host:port of the inviting machine, in the order of attempts.
	Addresses []string
	// Authority is the SHA-256 of the authority's certificate (DER).
	Authority [sha256.Size]byte
	Secret    [secretBytes]byte
	Expires   time.Time // whole seconds
}

// NewToken returns a token with a new secret.
func NewToken(addresses []string, authority [sha256.Size]byte, expires time.Time) (Token, error) {
	t := Token{Addresses: addresses, Authority: authority, Expires: expires.Truncate(time.Second)}
	if len(addresses) == 0 || len(addresses) > addressesMax {
		return t, fmt.Errorf("make a token: %d addresses, want 1 to %d", len(addresses), addressesMax)
	}
	if _, err := rand.Read(t.Secret[:]); err != nil {
		return t, fmt.Errorf("make a token: %w", err)
	}
	return t, nil
}

// String returns the token's text form.
func (t Token) String() string {
	b := binary.BigEndian.AppendUint64(nil, uint64(t.Expires.Unix()))
	b = append(b, t.Secret[:]...)
	b = append(b, t.Authority[:]...)
	b = append(b, strings.Join(t.Addresses, ",")...)
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(b)
}

// ParseToken parses the result of String. The error is ErrToken.
func ParseToken(text string) (Token, error) {
	var t Token
	encoded, ok := strings.CutPrefix(strings.TrimSpace(text), tokenPrefix)
	if !ok || len(encoded) > tokenBytesMax {
		return t, ErrToken
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	if err != nil || len(b) <= tokenFixed+crcBytes {
		return t, ErrToken
	}
	body, sum := b[:len(b)-crcBytes], b[len(b)-crcBytes:]
	if crc32.ChecksumIEEE(body) != binary.BigEndian.Uint32(sum) {
		return t, ErrToken
	}
	t.Expires = time.Unix(int64(binary.BigEndian.Uint64(body)), 0)
	copy(t.Secret[:], body[8:])
	copy(t.Authority[:], body[8+secretBytes:])
	t.Addresses = strings.Split(string(body[tokenFixed:]), ",")
	if len(t.Addresses) > addressesMax {
		return t, ErrToken
	}
	return t, nil
}
