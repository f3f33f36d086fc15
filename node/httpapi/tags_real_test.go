package httpapi_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"facet/internal/must"
	"facet/node/httpapi"
	"facet/node/nodetest"
	"facet/node/sigv4"
	"facet/router"
)

// mac returns the HMAC-SHA256 of text.
func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// tagger works on the tags of one gallery.
type tagger struct {
	t      *testing.T
	base   string
	client *nodetest.Client
	key    router.AccessKey
}

// asBook signs by the specification: it encodes the path of the wire once more.
func (c *tagger) asBook(method, target string, body []byte) nodetest.Request {
	c.t.Helper()
	r, err := c.client.Sign(c.base, method, target, body)
	must.Do(c.t, err)
	return r
}

// asReceived signs the path as it is on the wire, which some clients do. It follows
// the description of the scheme and shares no code with sigv4.
func (c *tagger) asReceived(method, target string, body []byte) nodetest.Request {
	date := time.Now().UTC().Format("20060102T150405Z")
	headers := []sigv4.Header{
		{Name: "host", Value: strings.TrimPrefix(c.base, "https://")}, {Name: "x-amz-date", Value: date}, {Name: "x-api-key", Value: c.client.APIKey},
	}
	lines, names := "", []string{}
	for _, h := range headers {
		lines += h.Name + ":" + h.Value + "\n"
		names = append(names, h.Name)
	}
	signed := strings.Join(names, ";")
	digest := sha256.Sum256(body)
	canonical := strings.Join([]string{method, target, "", lines, signed, hex.EncodeToString(digest[:])}, "\n")
	scope := date[:8] + "/ap-southeast-2/execute-api/aws4_request"
	digest = sha256.Sum256([]byte(canonical))
	key := []byte("AWS4" + c.key.Secret)
	for part := range strings.SplitSeq(scope, "/") {
		key = mac(key, part)
	}
	signature := hex.EncodeToString(mac(key, "AWS4-HMAC-SHA256\n"+date+"\n"+scope+"\n"+hex.EncodeToString(digest[:])))
	return nodetest.Request{Method: method, Target: target, Body: body, Headers: append(headers[1:], sigv4.Header{
		Name:  "Authorization",
		Value: "AWS4-HMAC-SHA256 Credential=" + c.key.ID + "/" + scope + ", SignedHeaders=" + signed + ", Signature=" + signature,
	})}
}

func (c *tagger) send(r nodetest.Request) nodetest.Answer {
	c.t.Helper()
	a, err := c.client.Send(c.t.Context(), c.base, r)
	must.Do(c.t, err)
	return a
}

func (c *tagger) tags() (names []string) {
	c.t.Helper()
	a := c.send(c.asBook(http.MethodGet, "/v1.1/tags", nil))
	if a.Decode(c.t, &names); a.Status != http.StatusOK {
		c.t.Fatalf("list: %d %s", a.Status, a.Body)
	}
	return names
}

// A tag takes the name in every encoding of the path. The three requests for a name
// have three encodings, each of which gets its turn. FuzzTagPath shows that they are
// one.
func TestTagsTakeEveryLegalName(t *testing.T) {
	t.Parallel()
	own := start(t, nodetest.Options{Nodes: 1}).tenant(t, "bank", 0)
	c := &tagger{t: t, base: own.base, client: own.gallery(t, "app", 1), key: own.key}
	encodings := slices.Sorted(maps.Keys(httpapi.Encodings))
	for i, name := range httpapi.OddNames {
		in := func(n int) string { return "/v1.1/tags/" + httpapi.Encodings[encodings[(i+n)%3]](name) }
		c.takes(name, "twice", c.asBook, in)
		c.takes(name, "as received", c.asReceived, in)
	}
}

// takes checks that a tag takes this name. in returns the path of its n-th request,
// and sign signs it.
func (c *tagger) takes(name, way string, sign func(method, target string, body []byte) nodetest.Request, in func(n int) string) {
	c.t.Helper()
	want := func(step string, got, want any) {
		c.t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			c.t.Errorf("%q signed %s: %s (-want +got):\n%s", name, way, step, diff)
		}
	}
	ask := func(step string, n int, method string, body []byte, status int) {
		c.t.Helper()
		if way == "as received" && strings.Contains(in(n), "%25") { // it could be the other form of another path
			if got := c.send(sign(method, in(n), body)).Status; got != http.StatusForbidden && got != http.StatusTooManyRequests { // after many of them
				c.t.Errorf("%q signed %s: %s: got %d", name, way, step, got)
			}
			want(step, c.send(c.asBook(method, in(n), body)).Status, status)
			return
		}
		want(step, c.send(sign(method, in(n), body)).Status, status)
	}
	next := "new " + name
	if utf8.RuneCountInString(next) > 128 {
		next = "x"
	}
	renamed := func(name string) []byte {
		text, err := json.Marshal(map[string]string{"newName": name})
		must.Do(c.t, err)
		return text
	}
	ask("create", 0, http.MethodPost, nil, 200)
	want("list", c.tags(), []string{name})
	ask("rename", 1, http.MethodPut, renamed(next), 200)
	want("list of renamed", c.tags(), []string{next})
	ask("delete the old name", 2, http.MethodDelete, nil, 404)
	want("rename back", c.send(c.asBook(http.MethodPut, "/v1.1/tags/"+url.PathEscape(next), renamed(name))).Status, 200)
	ask("create again", 1, http.MethodPost, nil, 400)
	ask("delete", 2, http.MethodDelete, nil, 200)
	want("list of none", c.tags(), []string{})
}
