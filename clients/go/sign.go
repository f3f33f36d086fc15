package client

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"time"
)

// The form of the signature that this client writes. The service reads others too.
const (
	algorithm  = "AWS4-HMAC-SHA256"
	terminator = "aws4_request"
	dateHeader = "x-cloud-date"
	dateFormat = "20060102T150405Z"
)

// signer signs requests with Signature Version 4 (AWS, "Create a signed AWS API
// request").
type signer struct {
	region, service, accessKey, secretKey string
}

// message is the part of a request that a signature covers besides the headers.
type message struct {
	method, host string
	path         string // percent-encoded
	query        string // percent-encoded, sorted by key
	body         []byte
}

// sign adds the date header and Authorization to header. The signature covers all
// headers, with blanks folded.
func (s signer) sign(m message, header http.Header, now time.Time) {
	date := now.UTC().Format(dateFormat)
	header.Set(dateHeader, date)
	lines := map[string]string{"host": m.host}
	for name, values := range header {
		lines[strings.ToLower(name)] = strings.Join(strings.Fields(strings.Join(values, ",")), " ")
	}
	var names []string
	for name := range lines {
		names = append(names, name)
	}
	slices.Sort(names)
	signed := strings.Join(names, ";")

	var canonical strings.Builder
	// The path is percent-encoded already, and the signature encodes it again.
	canonical.WriteString(m.method + "\n" + escape(m.path, "/") + "\n" + m.query + "\n")
	for _, name := range names {
		canonical.WriteString(name + ":" + lines[name] + "\n")
	}
	canonical.WriteString("\n" + signed + "\n" + hexHash(m.body))

	scope := strings.Join([]string{date[:8], s.region, s.service, terminator}, "/")
	key := []byte("AWS4" + s.secretKey)
	for part := range strings.SplitSeq(scope, "/") {
		key = mac(key, part)
	}
	text := strings.Join([]string{algorithm, date, scope, hexHash([]byte(canonical.String()))}, "\n")
	header.Set("Authorization", algorithm+" Credential="+s.accessKey+"/"+scope+
		", SignedHeaders="+signed+", Signature="+hex.EncodeToString(mac(key, text)))
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

func hexHash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// escape percent-encodes every byte except letters, digits, -._~ and the characters
// of keep. The standard library's functions leave more characters unescaped.
func escape(s, keep string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if letter || c >= '0' && c <= '9' || strings.IndexByte("-._~"+keep, c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.WriteString("%" + string(digits[c>>4]) + string(digits[c&15]))
	}
	return b.String()
}
