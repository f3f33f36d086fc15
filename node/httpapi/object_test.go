package httpapi

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"facet/internal/id"
	"facet/internal/must"
	"facet/node/sigv4"
	"facet/router"
)

func TestWholeNumbersAreReadInEveryForm(t *testing.T) {
	t.Parallel()
	f := func(text string, want int, ok bool) {
		t.Helper()
		o, err := readObject([]byte(`{"n":`+text+`}`), "n")
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		got, err := o.integer("n", bounds{-5, 1000}, 77)
		if (err == nil) != ok || ok && got != want {
			t.Errorf("%s: got %d, %v; want %d, ok %v", text, got, err, want, ok)
		}
	}
	f("10", 10, true)
	f("10.0", 10, true)
	f("1e1", 10, true)
	f("100E-1", 10, true)
	f("-0", 0, true)
	f("-5", -5, true)
	f("1000", 1000, true)
	f("null", 77, true)
	for _, bad := range []string{`"10"`, "1.5", "true", "false", "[1]", "{}", "-6", "1001", "1e400", "9007199254740993"} {
		f(bad, 0, false)
	}
}

func TestBodiesAreBoundedAndStrict(t *testing.T) {
	t.Parallel()
	f := func(text string, ok bool) {
		t.Helper()
		_, err := readObject([]byte(text), "a")
		var is *failure
		if (err == nil) != ok || err != nil && (!errors.As(err, &is) || is.status != 400) {
			t.Errorf("%.80s: %v", text, err)
		}
	}
	nested := func(n int) string {
		return `{"x":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`
	}
	f(`{}`, true)
	f(" \t\r\n{ \"a\" : 1 , \"b\" : [ { \"c\" : null } ] } \n", true)
	f(nested(nestingMax-1), true)
	f(nested(nestingMax), false)
	f(`{"x":`+strings.Repeat(`{"y":`, 5000)+"1"+strings.Repeat("}", 5000)+`}`, false)
	f(`{"x":[`+strings.Repeat("1,", jsonTokensMax)+`1]}`, false)
	f("{\"a\":\"\xff\"}", false)
	f(`{"a":"\ud800"}`, false)
	f("{\"\xff\":1}", false)
	f(`{"a":1,"a":2}`, false)
	f(`{"x":{"b":1,"b":2}}`, false)
	f(`{"a":01}`, false)
	f(`{"a":NaN}`, false)
	f(`{'a':1}`, false)
	f(`{"a":1}x`, false)
	f(`{"a":1`, false)
	f(`{"a"`, false)
	f(`null`, false)
	f(`"a"`, false)
	f("\xef\xbb\xbf{}", true)
	f("{\xef\xbb\xbf}", false)
	f(``, false)
}

func TestTagsAreStringsWithoutRepeats(t *testing.T) {
	t.Parallel()
	f := func(text string, want []string, ok bool) {
		t.Helper()
		o, err := readObject([]byte(`{"tags":`+text+`}`), "tags")
		must.Do(t, err)
		got, err := o.tags()
		if (err == nil) != ok || !cmp.Equal(got, want) {
			t.Errorf("%.80s: got %q, %v; want %q", text, got, err, want)
		}
	}
	f(`null`, nil, true)
	f(`[]`, []string{}, true)
	f(`["b","a","b","\u0061"]`, []string{"b", "a"}, true)
	f(`["`+strings.Repeat("é", tagMax)+`"]`, []string{strings.Repeat("é", tagMax)}, true)
	f(`["`+strings.Repeat("é", tagMax+1)+`"]`, nil, false)
	f(`[""]`, nil, false)
	f(`["a",1]`, nil, false)
	f(`["a",["b"]]`, nil, false)
	f(`"a"`, nil, false)
	f(`{}`, nil, false)
	many := make([]string, tagsMax+1)
	for i := range many {
		many[i] = strings.Repeat("a", i+1)
	}
	text, err := json.Marshal(many[:tagsMax])
	must.Do(t, err)
	f(string(text), many[:tagsMax], true)
	text = append(text[:len(text)-1], []byte(`,"one more"]`)...)
	f(string(text), nil, false)
}

// D14 lists the forms.
func TestBase64IsTakenInEveryForm(t *testing.T) {
	t.Parallel()
	f := func(text, want string, ok bool) {
		t.Helper()
		got, valid := decodeBase64([]byte(text))
		if valid != ok || ok && string(got) != want {
			t.Errorf("%q: got %q, %v; want %q, %v", text, got, valid, want, ok)
		}
	}
	f("", "", true)
	f("Zm8=", "fo", true)
	f("Zm8", "fo", true)
	f("Zg==", "f", true)
	f("Zg", "f", true)
	f(" Z\tm\r\n9 v\f\v", "foo", true)
	f("Z g = =", "f", true)
	f("+/+/", "\xfb\xff\xbf", true)
	f("-_-_", "\xfb\xff\xbf", true)
	f("data:image/jpeg;base64,Zm9v", "foo", true)
	f("DATA:;BASE64,Zm9v", "foo", true)
	f("data:image/png;charset=utf-8;base64, Zm9v", "foo", true)
	f(" \r\n\tdata:image/png;base64,Zm9v", "foo", true)
	f("data:,Zm9v", "", false)
	f("data:image/jpeg,Zm9v", "", false)
	f("data:"+strings.Repeat("x", dataPrefixMax)+";base64,Zm9v", "", false)
	f("+/-_", "", false)
	f("Zg=", "", false)
	f("Zg===", "", false)
	f("Zm9v=", "", false)
	f("Z", "", false)
	f("Zm9vZ", "", false)
	f("Zm=9v", "", false)
	f("Zm9v!", "", false)
	f("Zm9\u00a0v", "", false)
}

func TestImageMayBeEscapedInItsJSON(t *testing.T) {
	t.Parallel()
	o, err := readObject([]byte(`{"face":"data:image\/png;base64,\n\u002b\/+\/","x":1}`), "face")
	must.Do(t, err)
	if got, err := o.image("face"); err != nil || string(got) != "\xfb\xff\xbf" {
		t.Errorf("got %q, %v", got, err)
	}
}

// Two images of one body are decoded in place, one after the other.
func TestTwoImagesOfABodyDoNotOverlap(t *testing.T) {
	t.Parallel()
	first, second := bytes.Repeat([]byte("first"), 1000), bytes.Repeat([]byte("second"), 1000)
	body := `{"face":"` + base64.StdEncoding.EncodeToString(first) + `","probe":"` + base64.RawURLEncoding.EncodeToString(second) + `"}`
	o, err := readObject([]byte(body), "face", "probe")
	must.Do(t, err)
	probe, err := o.image("probe")
	must.Do(t, err)
	face, err := o.image("face")
	must.Do(t, err)
	if !bytes.Equal(face, first) || !bytes.Equal(probe, second) {
		t.Errorf("got %.20q and %.20q", face, probe)
	}
}

func TestAttributesAreWrittenAsStrings(t *testing.T) {
	t.Parallel()
	f := func(v float32, want string) {
		t.Helper()
		if got := decimal(v); got != want {
			t.Errorf("%g: got %s, want %s", v, got, want)
		}
	}
	f(0, "0")
	f(float32(math.Copysign(0, -1)), "0")
	f(0.5, "0.5")
	f(0.1, "0.1")
	f(12.345678, "12.3457")
	f(-179.99999, "-180")
	f(1234567, "1.23457e+06")
	f(0.00001, "1e-05")
	if got := pixel(-0.4); got != "0" {
		t.Errorf("pixel: %s", got)
	}
	if got := pixel(11999.5); got != "12000" {
		t.Errorf("pixel: %s", got)
	}
}

func TestOperationIdentityFollowsD8(t *testing.T) {
	t.Parallel()
	base := func() *call {
		c := &call{head: head{method: "POST", path: "/v1.1/subjects"}, claim: &sigv4.Claim{Signature: "s"}}
		c.key.Tenant = id.Tenant{UUID: id.UUID{1}}
		c.access = router.Access{Application: id.Application{UUID: id.UUID{2}}}
		c.body.hash[0] = 3
		return c
	}
	keyed := func(key string) func(*call) {
		return func(c *call) { c.headers = []sigv4.Header{{Name: "Idempotency-Key", Value: key}} }
	}
	seen := map[id.Operation]string{}
	for name, change := range map[string]func(*call){
		"nothing": func(*call) {}, "tenant": func(c *call) { c.key.Tenant.UUID[0]++ }, "application": func(c *call) { c.access.Application.UUID[0]++ },
		"method": func(c *call) { c.method = "PUT" }, "path": func(c *call) { c.path = "/v1.1/subjects/" },
		"signature": func(c *call) { c.claim.Signature = "t" }, "key": keyed("k"), "other key": keyed("l"), "key like the signature": keyed("s"),
	} {
		c := base()
		change(c)
		w, err := c.write()
		must.Do(t, err)
		if w.Keyed != strings.Contains(name, "key") || w.Request[0] != 3 {
			t.Errorf("%s: %+v", name, w)
		}
		if other, ok := seen[w.Operation]; ok {
			t.Errorf("%s and %s are one operation", name, other)
		}
		seen[w.Operation] = name
	}
	for key, ok := range map[string]bool{"": false, "k": true, strings.Repeat("k", 128): true, strings.Repeat("k", 129): false} {
		c := base()
		keyed(key)(c)
		if _, err := c.write(); (err == nil) != ok {
			t.Errorf("key of %d characters: %v", len(key), err)
		}
	}
	// A write with a key depends on no signature: a retry has a new one.
	a, b := base(), base()
	keyed("k")(a)
	keyed("k")(b)
	b.claim.Signature = "t"
	wa, _ := a.write()
	wb, _ := b.write()
	if wa.Operation != wb.Operation {
		t.Error("a retry with the same Idempotency-Key and a new signature is another operation")
	}
}

// readObject agrees with encoding/json.
func FuzzReadObject(f *testing.F) {
	f.Add([]byte(`{"face":"aGk=","limit":10.0,"tags":["a","a"],"x":{"y":[null,true]}}`))
	f.Add([]byte(`{"face":"\u0061\/","face":1}`))
	f.Add([]byte(`{"limit":1e5,"tags":[]}` + " {}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		o, err := readObject(slices.Clone(text), "face", "limit", "tags")
		if err != nil {
			return
		}
		var want map[string]any
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatalf("%q: accepted, but %v", text, err)
		}
		for _, name := range []string{"face", "limit", "tags"} {
			raw, ok := o[name]
			if ok != (want[name] != nil) {
				t.Fatalf("%q: %s: %q, want %v", text, name, raw, want[name])
			}
			if !ok {
				continue
			}
			var got any
			if err := json.Unmarshal(raw, &got); err != nil || !cmp.Equal(got, want[name]) {
				t.Fatalf("%q: %s: %q, want %v", text, name, raw, want[name])
			}
		}
		if n, err := o.integer("limit", bounds{1, 50}, 10); err == nil && (n < 1 || n > 50) {
			t.Fatalf("%q: limit %d", text, n)
		}
		if tags, err := o.tags(); err == nil && len(tags) > tagsMax {
			t.Fatalf("%q: %d tags", text, len(tags))
		}
		if image, err := o.image("face"); err == nil && len(image) > len(text) {
			t.Fatalf("%q: image of %d bytes", text, len(image))
		}
	})
}

// decodeBase64 agrees with the decoder of the standard library.
func FuzzBase64(f *testing.F) {
	for _, s := range []string{"Zm9v", "Zg==", " Zg = =", "data:;base64,Zg", "-_", "+/+", "\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, ok := decodeBase64(slices.Clone(text))
		plain, err := base64.StdEncoding.DecodeString(string(text))
		if err == nil && (!ok || !bytes.Equal(got, plain)) {
			t.Fatalf("%q: got %q, %v; want %q", text, got, ok, plain)
		}
		if !ok {
			return
		}
		again, ok := decodeBase64([]byte(base64.RawURLEncoding.EncodeToString(got)))
		if !ok || !bytes.Equal(again, got) {
			t.Fatalf("%q: %q comes back as %q", text, got, again)
		}
	})
}

// Every head is refused or unambiguous.
func FuzzHead(f *testing.F) {
	f.Add("GET", "/v1.1/subjects/a%2Fb?start=1", "HTTP/1.1", "Host: a\r\nContent-Length: 0\r\n\r\n")
	f.Add("POST", "/%2e%2e/", "HTTP/1.1", "A:b\r\n c\r\n\r\n")
	f.Add("POST", "//", "HTTP/1.1", "\r\n")
	f.Fuzz(func(t *testing.T, method, target, protocol, raw string) {
		h, err := parseHead(method, target, protocol, raw, 1000)
		if err != nil {
			if got, fault := failureOf(err, v11, ""); fault || got.status < 400 {
				t.Fatalf("%v is no refusal", err)
			}
			return
		}
		if h.length < 0 || h.length > 1000 || len(h.segments) == 0 || len(h.segments) > segmentsMax || len(h.headers) > headersMax {
			t.Fatalf("bounds: %+v", h)
		}
		for i, s := range h.segments {
			if s == "." || s == ".." || s == "" && i < len(h.segments)-1 || strings.ContainsFunc(s, unicode.IsControl) {
				t.Fatalf("%q: segment %q", target, s)
			}
		}
		if _, _, err := served.find(h.method, h.segments); err != nil {
			if got, fault := failureOf(err, v11, ""); fault || got.status != 404 && got.status != 405 {
				t.Fatalf("%q: %v", target, err)
			}
		}
		if _, err := parameters(h.query); err != nil {
			if got, fault := failureOf(err, v11, ""); fault || got.status != 400 {
				t.Fatalf("%q: %v", target, err)
			}
		}
	})
}

// A large image is decoded without a copy of the body.
func TestImageAliasesTheBody(t *testing.T) {
	t.Parallel()
	body := []byte(`{"probe":"` + strings.Repeat("A", 1<<20) + `"}`)
	o, err := readObject(body, "probe")
	must.Do(t, err)
	image, err := o.image("probe")
	must.Do(t, err)
	if &image[0] != &body[len(`{"probe":"`)] {
		t.Error("the image was copied")
	}
}
