package httpapi

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// splitTarget splits a raw path at its slashes and decodes each segment once. It
// refuses a target that a proxy or another reader could understand differently:
//   - dot segments, and empty segments except the last
//   - bytes that have to be encoded
//   - encoded control characters and bad UTF-8
func splitTarget(path, query string) ([]string, error) {
	if !strings.HasPrefix(path, "/") {
		return nil, badFrame("The request target is not a path.")
	}
	for _, part := range []string{path, query} {
		for i := range len(part) {
			if c := part[i]; c <= ' ' || c > '~' || strings.IndexByte("\"#<>\\^`{|}", c) >= 0 {
				return nil, badFrame("The request target has a character that must be percent-encoded.")
			}
		}
	}
	raw := strings.Split(path[1:], "/")
	if len(raw) > segmentsMax {
		return nil, badFrame("The path has too many segments.")
	}
	segments := make([]string, len(raw))
	for i, part := range raw {
		plain, err := url.PathUnescape(part)
		switch {
		case err != nil || !utf8.ValidString(plain):
			return nil, badFrame("The path is not percent-encoded UTF-8.")
		case plain == "." || plain == ".." || plain == "" && i < len(raw)-1:
			return nil, badFrame(`The path must have no empty part, no "." and no "..".`)
		case strings.ContainsFunc(plain, unicode.IsControl):
			return nil, badFrame("The path has a control character.")
		}
		segments[i] = plain
	}
	return segments, nil
}

// parameters reads a query, in which a plus sign of a value stands for a space
// (sigv4.Claim.Query). The signature check has refused repeated keys; here the first
// one counts.
func parameters(query string) (map[string]string, error) {
	all := make(map[string]string)
	for part := range strings.SplitSeq(query, "&") {
		if part == "" {
			continue
		}
		key, value, _ := strings.Cut(part, "=")
		plainKey, err := url.PathUnescape(key)
		if err != nil {
			return nil, invalid("", "The query is not percent-encoded.")
		}
		plainValue, err := url.QueryUnescape(value)
		if err != nil {
			return nil, invalid("", "The query is not percent-encoded.")
		}
		if _, ok := all[plainKey]; !ok {
			all[plainKey] = plainValue
		}
	}
	return all, nil
}
