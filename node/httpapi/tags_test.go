package httpapi

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"facet/node/sigv4"
)

// OddNames are legal names of tags, each with something that a path, a query, a
// JSON text or a signature could take for something else.
var OddNames = []string{
	"a/b", "/", "//", "/a", "a/", "../x", "./x", "...", "a/../b", "%", "100%", "%2F", "%252F", "%zz", "a%00b", "+", "a+b c", " ", " a ", ";", "a;b=c",
	"?", "a?b=c", "#", "&", "a=b&c", "=", ":", "@", "!$'()*,", "~", "-._", "\\", "\"", "'", "<script>", "{name}", "{name?}", "|^`[]", "null", "[]", "0",
	"é", "É", "ß", "ﬁ", "日本語", "한국어", "नमस्ते", "עברית", "مرحبا", "\u200d", "👩\u200d👩\u200d👧", "🚪", "\u202e", "\u2028", "\ufeff", "\ufffd", "\U0010ffff", "\u0301", "q\u0327\u0308",
	"events", "v1.1", "subjects", strings.Repeat("n", 128), strings.Repeat("🚪", 128), strings.Repeat("/", 128), strings.Repeat("%", 128),
}

// Encodings are ways to write a name as one segment of a path.
var Encodings = map[string]func(name string) string{
	"what must be": url.PathEscape,
	"everything": func(name string) string {
		return strings.ReplaceAll(fmt.Sprintf("% X", "\x00"+name), " ", "%")[2:]
	},
	"lower-case digits": func(name string) string {
		return strings.ReplaceAll(fmt.Sprintf("% x", "\x00"+name), " ", "%")[2:]
	},
}

func TestTagNeedsNoContentLength(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	q := signed{as: "biometric", method: "POST", target: "/v1.1/tags/red", headers: []sigv4.Header{apiKey}}
	if a := r.send(q); a.status != 200 || a.body != "" { // raw sends none with an empty body
		t.Errorf("create: %d %s", a.status, a.body)
	}
}

func TestTagNamesFollowD31(t *testing.T) {
	t.Parallel()
	for _, name := range OddNames {
		if err := checkTagName("name", name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{
		"", ".", "..", "\x00", "a\tb", "a\r\nb", "\x7f", "\u0080", "\u009f", "e\u0301", "\u212b", "\u1112\u1161\u11ab", "a\u0308\u0327",
		strings.Repeat("n", 129), strings.Repeat("🚪", 129),
	} {
		if err := checkTagName("name", name); err == nil {
			t.Errorf("%q is taken", name)
		}
	}
}

// TestReferenceLeadsNowhereElse checks the names of probes that people compare with external ids.
func TestReferenceLeadsNowhereElse(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"visits/12", "a/b", "..a", "a..", "日本語", "עברית", "visit 12", strings.Repeat("n", 128)} {
		if err := checkReference(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{
		".", "..", "a/../b", "../a", "a/..", "a/./b", "./a", "a//b", "/a", "a/", "a\nb", "a\x00", "\u009f", "e\u0301", strings.Repeat("n", 129), "a\u202eb", "\u2066a", "a\u200f", "\u061c",
	} {
		if err := checkReference(name); err == nil {
			t.Errorf("%q is taken", name)
		}
	}
}

// FuzzTagPath checks two promises for raw paths of tags: every legal name has a
// path that names it, and every accepted path names one legal name, the same in
// each of its spellings.
func FuzzTagPath(f *testing.F) {
	for _, name := range OddNames {
		f.Add(name)
		f.Add(url.PathEscape(name))
	}
	for _, part := range []string{"%2e%2e", "%C0%AF", "a%2", "e%CC%81", "%E2%84%AB", "%00", "a/b", ""} {
		f.Add(part)
	}
	parse := func(part string) (name string, err error) {
		h, err := parseHead("POST", "/v1.1/tags/"+part, "HTTP/1.1", "Host: a\r\n\r\n", 0)
		if err != nil {
			return "", err
		}
		op, parameters, err := served.find(h.method, h.segments)
		if err != nil {
			return "", err
		}
		if op.pattern != "/v1.1/tags/{name?}" || len(parameters) != 1 {
			return "", fmt.Errorf("found %s %q", op.pattern, parameters)
		}
		return parameters[0], checkTagName("name", parameters[0])
	}
	f.Fuzz(func(t *testing.T, text string) {
		if utf8.ValidString(text) && checkTagName("name", text) == nil {
			for what, encode := range Encodings {
				if name, err := parse(encode(text)); err != nil || name != text {
					t.Fatalf("%q, encoded %s: got %q, %v", text, what, name, err)
				}
			}
		}
		name, err := parse(text)
		if err != nil {
			if got, fault := failureOf(err, v11, ""); fault || got.status != 400 && got.status != 404 {
				t.Fatalf("%q: %v is no refusal", text, err)
			}
			return
		}
		if n := utf8.RuneCountInString(name); n < 1 || n > tagMax || !utf8.ValidString(name) || !norm.NFC.IsNormalString(name) ||
			name == "." || name == ".." || strings.ContainsFunc(name, unicode.IsControl) {
			t.Fatalf("%q: names %q", text, name)
		}
		for what, encode := range Encodings {
			if again, err := parse(encode(name)); err != nil || again != name {
				t.Fatalf("%q: %q encoded %s is %q, %v", text, name, what, again, err)
			}
		}
	})
}
