package sigv4

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
)

// The canonical request of the specification:
//
//	METHOD \n PATH \n QUERY \n name:value\n … \n SIGNED-HEADERS \n hex(sha256(body))
//
// Signers differ in three of its parts (decision D2):
//   - They encode the path of the request target, already encoded once, again or not.
//   - They normalise and sort the query or not. A plus sign in a value is a space to
//     most of them, and the specification's plus sign to the others.
//   - They keep the port of the host or not, and a proxy drops it or not.
//
// form is one choice of the three.
type form struct{ path, query, host string }

// forms returns the canonical forms of r to try, the specification's first, without
// repeats. It leaves out the as-received path when it contains "%25". Such a path
// could be the twice-encoded form of another one, and two targets would share one
// signature. Only the first query reads a plus sign as a plus sign; Claim.Query
// relies on it.
func (r Request) forms(cfg Config, host string) ([]form, error) {
	rawPath, rawQuery := r.path(), r.query()
	pairs, err := readPairs(rawQuery)
	if err != nil {
		return nil, err
	}
	normal := make([]pair, len(pairs))
	for i, p := range pairs {
		normal[i] = p.normalise()
	}
	paths, queries, hosts := []string{escape(rawPath, true)}, []string{sortedQuery(normal)}, []string{host}
	if cfg.Canonical == Tolerant {
		if !strings.Contains(rawPath, "%25") {
			paths = append(paths, rawPath)
		}
		// botocore sorts the pairs as they are, and does not encode them again.
		queries = append(queries, sortedQuery(spaced(normal, pairs)), sortedQuery(pairs), rawQuery)
		hosts = append(hosts, otherHosts(host, cfg.Ports)...)
	}
	paths, queries, hosts = slices.Compact(paths), slices.Compact(queries), slices.Compact(hosts)
	list := make([]form, 0, formsMax)
	for _, p := range paths {
		for _, q := range queries {
			for _, h := range hosts {
				list = append(list, form{path: p, query: q, host: h})
			}
		}
	}
	return list, nil
}

// hash returns the hexadecimal SHA-256 of the canonical request in form f.
func (f form) hash(method string, names, values []string, bodyHash string) string {
	sum := sha256.Sum256([]byte(f.text(method, names, values, bodyHash)))
	return hex.EncodeToString(sum[:])
}

// text returns the canonical request in form f. names are the signed headers,
// values their canonical values, in the same order; the value of host comes from f.
func (f form) text(method string, names, values []string, bodyHash string) string {
	var b strings.Builder
	b.WriteString(method)
	b.WriteByte('\n')
	b.WriteString(f.path)
	b.WriteByte('\n')
	b.WriteString(f.query)
	b.WriteByte('\n')
	for i, name := range names {
		value := values[i]
		if name == "host" {
			value = f.host
		}
		b.WriteString(name)
		b.WriteByte(':')
		b.WriteString(value)
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	b.WriteString(strings.Join(names, ";"))
	b.WriteByte('\n')
	b.WriteString(bodyHash)
	return b.String()
}

// canonicalValue returns the one value of a header for the canonical request:
// trimmed, with runs of blanks folded to one and repeated headers joined by commas.
func canonicalValue(values []string) string {
	folded := make([]string, len(values))
	for i, v := range values {
		folded[i] = strings.Join(strings.FieldsFunc(v, func(c rune) bool { return c == ' ' || c == '\t' }), " ")
	}
	return strings.Join(folded, ",")
}

// pair is a query parameter, percent-encoded somehow.
type pair struct{ key, value string }

var (
	errQuery    = errors.New("query is not percent-encoded or too long")
	errRepeated = errors.New("query key is repeated")
)

// repeated is errRepeated with the key, as it was received.
type repeated struct {
	error
	key string
}

// readPairs splits a raw query. It refuses a key that is repeated in any encoding,
// because readers would disagree about which value counts.
func readPairs(raw string) ([]pair, error) {
	parts := strings.Split(raw, "&")
	if len(parts) > queryPairsMax {
		return nil, errQuery
	}
	pairs := make([]pair, 0, len(parts))
	seen := make(map[string]bool, len(parts))
	for _, part := range parts {
		if part == "" {
			continue
		}
		key, value, _ := strings.Cut(part, "=")
		plain, ok := unescape(key)
		if _, ok2 := unescape(value); !ok || !ok2 {
			return nil, errQuery
		}
		if seen[plain] {
			return nil, repeated{errRepeated, key}
		}
		seen[plain] = true
		pairs = append(pairs, pair{key, value})
	}
	return pairs, nil
}

// normalise decodes p and encodes it again as the specification says. A plus sign
// is a plus sign.
func (p pair) normalise() pair {
	key, _ := unescape(p.key) // readPairs has checked that both can be decoded
	value, _ := unescape(p.value)
	return pair{escape(key, false), escape(value, false)}
}

// spaced returns the pairs in their normal form, with a space for each plus sign of a
// value as it was received.
func spaced(normal, received []pair) []pair {
	list := slices.Clone(normal)
	for i, p := range received {
		if strings.Contains(p.value, "+") {
			list[i] = pair{p.key, strings.ReplaceAll(p.value, "+", "%20")}.normalise()
		}
	}
	return list
}

// sortedQuery joins pairs sorted by key, each with an equals sign.
func sortedQuery(pairs []pair) string {
	sorted := slices.SortedFunc(slices.Values(pairs), func(a, b pair) int { return strings.Compare(a.key, b.key) })
	lines := make([]string, len(sorted))
	for i, p := range sorted {
		lines[i] = p.key + "=" + p.value
	}
	return strings.Join(lines, "&")
}

// escape percent-encodes every byte of s except RFC 3986's unreserved characters
// and, in a path, the slash.
func escape(s string, path bool) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	b.Grow(len(s))
	for i := range len(s) {
		c := s[i]
		if unreserved(c) || path && c == '/' {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(digits[c>>4])
		b.WriteByte(digits[c&15])
	}
	return b.String()
}

// unreserved reports whether c stands for itself everywhere in a URI (RFC 3986,
// §2.3).
func unreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		c == '-' || c == '.' || c == '_' || c == '~'
}

// unescape percent-decodes s once. ok is false when a percent sign is not followed
// by two hexadecimal digits.
func unescape(s string) (plain string, ok bool) {
	if !strings.Contains(s, "%") {
		return s, true
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b = append(b, s[i])
			continue
		}
		if i+2 >= len(s) {
			return "", false
		}
		var one [1]byte
		if _, err := hex.Decode(one[:], []byte(s[i+1:i+3])); err != nil {
			return "", false
		}
		b = append(b, one[0])
		i += 2
	}
	return string(b), true
}

// otherHosts returns what a client may have signed for a Host header: the host without
// its port, or with a port that a proxy dropped.
func otherHosts(host string, ports []string) []string {
	if bare := withoutPort(host); bare != host {
		return []string{bare}
	}
	hosts := []string{host + ":443"}
	for _, port := range ports {
		if port != "" {
			hosts = append(hosts, host+":"+port)
		}
	}
	return hosts
}

// withoutPort cuts ":port" off the value of a Host header.
func withoutPort(host string) string {
	colon := strings.LastIndexByte(host, ':')
	if colon < 0 || colon < strings.LastIndexByte(host, ']') || colon == len(host)-1 {
		return host
	}
	for _, c := range host[colon+1:] {
		if c < '0' || c > '9' {
			return host
		}
	}
	return host[:colon]
}
