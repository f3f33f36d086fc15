package main

import (
	"bytes"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// meaning is the content of a signed request in one normal form. Two requests of one meaning
// may share a signature; others must not.
type meaning struct {
	method   string
	segments []string          // of the path, decoded once
	query    map[string]string // decoded
	signed   map[string]string // signed headers, their values trimmed and their blanks folded
	auth     []string          // scheme and fields of Authorization, sorted
	body     string
}

// equal reports whether two requests have one meaning.
func (m meaning) equal(other meaning) bool {
	return m.method == other.method && slices.Equal(m.segments, other.segments) && maps.Equal(m.query, other.query) &&
		maps.Equal(m.signed, other.signed) && slices.Equal(m.auth, other.auth) && m.body == other.body
}

// once lists the headers that readers use and that may come once.
var once = []string{
	"host", "authorization", "x-api-key", "idempotency-key", "content-length", "transfer-encoding", "content-type", "expect",
	"x-cloud-date", "x-amz-date", "x-cloud-content-sha256", "x-amz-content-sha256",
}

// meaningOf reads a request. It shares no code with facet: a mistake in facet's reader must
// not hide itself. ok is false if raw is no request.
func meaningOf(raw []byte) (m meaning, ok bool) {
	// A reader skips an empty line before a request (RFC 9112, §2.2).
	raw = bytes.TrimPrefix(raw, []byte("\r\n"))
	head, body, found := bytes.Cut(raw, []byte("\r\n\r\n"))
	lines := strings.Split(string(head), "\r\n")
	first := strings.Split(lines[0], " ")
	if !found || len(first) != 3 {
		return m, false
	}
	m = meaning{method: first[0], query: map[string]string{}, signed: map[string]string{}}
	path, query, _ := strings.Cut(first[1], "?")
	for part := range strings.SplitSeq(path, "/") {
		m.segments = append(m.segments, plain(part))
	}
	for pair := range strings.SplitSeq(query, "&") {
		if name, value, _ := strings.Cut(pair, "="); pair != "" {
			m.query[plain(name)] = plain(value)
		}
	}
	headers, length := map[string]string{}, 0
	for _, line := range lines[1:] {
		name, value, found := strings.Cut(line, ":")
		name = strings.ToLower(name)
		value = strings.Join(strings.FieldsFunc(value, func(c rune) bool { return c == ' ' || c == '\t' }), " ")
		first, again := headers[name]
		if !found || again && slices.Contains(once, name) {
			return m, false
		}
		if again {
			value = first + "," + value
		}
		headers[name] = value
	}
	if stated, there := headers["content-length"]; there {
		var err error
		if length, err = strconv.Atoi(stated); err != nil || length < 0 || length > len(body) {
			return m, false
		}
	}
	m.body = string(body[:length])
	scheme, fields, _ := strings.Cut(headers["authorization"], " ")
	m.auth = []string{scheme}
	for field := range strings.SplitSeq(fields, ",") {
		field = strings.TrimSpace(field)
		m.auth = append(m.auth, field)
		if names, is := strings.CutPrefix(field, "SignedHeaders="); is {
			for name := range strings.SplitSeq(names, ";") {
				m.signed[name] = headers[name]
			}
		}
	}
	slices.Sort(m.auth)
	return m, true
}

// plain decodes s once. What can't be decoded stays as it is.
func plain(s string) string {
	if text, err := url.PathUnescape(s); err == nil {
		return text
	}
	return "%" + s
}
