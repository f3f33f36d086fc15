package httpapi

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/unicode/norm"

	"facet/node/sigv4"
)

// oddNames are legal names of tags, each with something that a path, a query, a
// JSON text or a signature could take for something else.
var oddNames = []string{
	"a/b", "/", "//", "/a", "a/", "../x", "./x", "...", "a/../b", "%", "100%", "%2F", "%252F", "%zz", "a%00b", "+", "a+b c", " ", " a ", ";", "a;b=c",
	"?", "a?b=c", "#", "&", "a=b&c", "=", ":", "@", "!$'()*,", "~", "-._", "\\", "\"", "'", "<script>", "{name}", "{name?}", "|^`[]", "null", "[]", "0",
	"é", "É", "ß", "ﬁ", "日本語", "한국어", "नमस्ते", "עברית", "مرحبا", "\u200d", "👩\u200d👩\u200d👧", "🚪", "\u202e", "\u2028", "\ufeff", "\ufffd", "\U0010ffff", "\u0301", "q\u0327\u0308",
	"events", "v1.1", "subjects", strings.Repeat("n", 128), strings.Repeat("🚪", 128), strings.Repeat("/", 128), strings.Repeat("%", 128),
}

// Ways to write a name as one segment of a path.
var encodings = map[string]func(name string) string{
	"what must be": url.PathEscape,
	"everything": func(name string) string {
		return strings.ReplaceAll(fmt.Sprintf("% X", "\x00"+name), " ", "%")[2:]
	},
	"lower-case digits": func(name string) string {
		return strings.ReplaceAll(fmt.Sprintf("% x", "\x00"+name), " ", "%")[2:]
	},
}

// mac returns the HMAC-SHA256 of text.
func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// rawAsReceived returns q with a signature over the path as it is on the wire,
// which some clients make. It follows the description of the scheme and shares no
// code with sigv4. q has no query.
func (q signed) rawAsReceived(body string) string {
	date := testNow.Format("20060102T150405Z")
	headers := fmt.Sprintf("host:facet.test\nx-amz-date:%s\n", date)
	for _, h := range q.headers {
		headers += strings.ToLower(h.Name) + ":" + h.Value + "\n"
	}
	lines := strings.Split(strings.TrimSuffix(headers, "\n"), "\n")
	slices.Sort(lines)
	var names []string
	for _, line := range lines {
		name, _, _ := strings.Cut(line, ":")
		names = append(names, name)
	}
	digest := sha256.Sum256([]byte(body))
	canonical := strings.Join([]string{
		q.method, q.target, "", strings.Join(lines, "\n"), "", strings.Join(names, ";"), hex.EncodeToString(digest[:]),
	}, "\n")
	scope := date[:8] + "/ap-southeast-2/execute-api/aws4_request"
	digest = sha256.Sum256([]byte(canonical))
	key := []byte("AWS4secret of " + q.as)
	for part := range strings.SplitSeq(scope, "/") {
		key = mac(key, part)
	}
	signature := hex.EncodeToString(mac(key, "AWS4-HMAC-SHA256\n"+date+"\n"+scope+"\n"+hex.EncodeToString(digest[:])))
	return fmt.Sprintf("%s %s HTTP/1.1\r\n%s\r\nContent-Length: %d\r\nAuthorization: AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%s\r\n\r\n%s",
		q.method, q.target, strings.Join(lines, "\r\n"), len(body), q.as, scope, strings.Join(names, ";"), signature, body)
}

// client sends requests for one application on one connection.
type client struct {
	*running
	to   io.Writer
	from *bufio.Reader
}

// tagger makes a gallery and a client that works on its tags.
func tagger(t *testing.T) *client {
	t.Helper()
	r := start(t, nil)
	if a := r.send(signed{as: "admin", method: "POST", target: "/api/galleries", body: `{"name":"app","faceMinimumQualityScore":0.5,"size":2}`}); a.status != 200 {
		t.Fatalf("gallery: %d %s", a.status, a.body)
	}
	c := r.dial()
	return &client{r, c, bufio.NewReader(c)}
}

// ask sends one signed request, for which sign returns the bytes.
func (c *client) ask(sign func(q signed, body string) string, method, target, body string) received {
	c.t.Helper()
	q := signed{as: "biometric", method: method, target: target, headers: []sigv4.Header{{Name: "x-api-key", Value: "app" + strings.Repeat("x", 37)}}}
	if _, err := io.WriteString(c.to, sign(q, body)); err != nil {
		c.t.Fatal(err)
	}
	return read(c.t, c.from, method)
}

// asBook signs by the specification: it encodes the path of the wire once more.
func (c *client) asBook(q signed, body string) string {
	q.body = body
	return q.raw(c.t)
}

func (c *client) tags() []string {
	c.t.Helper()
	a := c.ask(c.asBook, "GET", "/v1.1/tags", "")
	var names []string
	if err := json.Unmarshal([]byte(a.body), &names); err != nil || a.status != 200 {
		c.t.Fatalf("list: %d %s", a.status, a.body)
	}
	return names
}

// A tag takes the name in every encoding of the path.
func TestTagsTakeEveryLegalName(t *testing.T) {
	t.Parallel()
	for what, encode := range encodings {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := tagger(t)
			asReceived := func(q signed, body string) string { return q.rawAsReceived(body) }
			for _, name := range oddNames {
				target := "/v1.1/tags/" + encode(name)
				next := "new " + name
				if utf8.RuneCountInString(next) > tagMax {
					next = "x"
				}
				text, err := json.Marshal(map[string]string{"newName": next})
				if err != nil {
					t.Fatal(err)
				}
				for way, sign := range map[string]func(signed, string) string{"twice": c.asBook, "as received": asReceived} {
					if way == "as received" && strings.Contains(target, "%25") {
						if a := c.ask(sign, "POST", target, ""); a.status != 403 { // it could be the other form of another path
							t.Errorf("%q signed %s: %d %s", name, way, a.status, a.body)
						}
						continue
					}
					want := func(step string, got, want any) {
						t.Helper()
						if diff := cmp.Diff(want, got); diff != "" {
							t.Errorf("%q signed %s: %s (-want +got):\n%s", name, way, step, diff)
						}
					}
					want("create", c.ask(sign, "POST", target, "").status, 200)
					want("list", c.tags(), []string{name})
					want("create again", c.ask(sign, "POST", target, "").status, 400)
					want("rename", c.ask(sign, "PUT", target, string(text)).status, 200)
					want("list of renamed", c.tags(), []string{next})
					want("delete the old name", c.ask(sign, "DELETE", target, "").status, 404)
					back, _ := json.Marshal(map[string]string{"newName": name})
					want("rename back", c.ask(c.asBook, "PUT", "/v1.1/tags/"+url.PathEscape(next), string(back)).status, 200)
					want("delete", c.ask(sign, "DELETE", target, "").status, 200)
					want("list of none", c.tags(), []string{})
				}
			}
		})
	}
}

func TestTagNeedsNoContentLength(t *testing.T) {
	t.Parallel()
	c := tagger(t)
	without := func(q signed, body string) string {
		return strings.Replace(q.rawAsReceived(body), "Content-Length: 0\r\n", "", 1)
	}
	if a := c.ask(without, "POST", "/v1.1/tags/red", ""); a.status != 200 || a.body != "" {
		t.Errorf("create: %d %s", a.status, a.body)
	}
	if diff := cmp.Diff([]string{"red"}, c.tags()); diff != "" {
		t.Error(diff)
	}
}

func TestGalleryHasAtMost64Tags(t *testing.T) {
	t.Parallel()
	c := tagger(t)
	for i := range 64 {
		if a := c.ask(c.asBook, "POST", fmt.Sprintf("/v1.1/tags/%d", i), ""); a.status != 200 {
			t.Fatalf("tag %d: %d %s", i, a.status, a.body)
		}
	}
	a := c.ask(c.asBook, "POST", "/v1.1/tags/64", "")
	if a.status != 400 || !strings.Contains(a.body, `"errorType":"InvalidRequest","reason":"TagLimit"`) {
		t.Errorf("tag 65: %d %s", a.status, a.body)
	}
	if n := len(c.tags()); n != 64 {
		t.Errorf("%d tags", n)
	}
}

func TestTagNamesFollowD31(t *testing.T) {
	t.Parallel()
	for _, name := range oddNames {
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

// FuzzTagPath checks two promises for raw paths of tags: every legal name has a
// path that names it, and every accepted path names one legal name, the same in
// each of its spellings.
func FuzzTagPath(f *testing.F) {
	for _, name := range oddNames {
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
		op, parameters, err := find(h.method, h.segments)
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
			for what, encode := range encodings {
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
			name == "." || name == ".." || strings.ContainsFunc(name, isControl) {
			t.Fatalf("%q: names %q", text, name)
		}
		for what, encode := range encodings {
			if again, err := parse(encode(name)); err != nil || again != name {
				t.Fatalf("%q: %q encoded %s is %q, %v", text, name, what, again, err)
			}
		}
	})
}
