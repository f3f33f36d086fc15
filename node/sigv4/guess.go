package sigv4

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
)

// A signature does not say what was signed. Explain tries what a client may have signed instead of
// the right text: each usual mistake alone, then each two of them together.

const (
	// mistakesMax is the most mistakes that are tried together.
	mistakesMax = 2
	// guessedHeadersMax is the most signed headers of which other values are tried.
	guessedHeadersMax = 16
)

// guess is a request as a client may have signed it.
type guess struct {
	form
	method, body string
	values       []string
	key          signingKey
}

// choice is a value of one part of a guess. why says what is wrong with it, and how to repair
// it; it is empty if the verifier accepts the value.
type choice struct {
	apply    func(*guess)
	why, fix string
}

// part has the choices for one part of a guess.
type part []choice

// value adds a choice, unless an earlier one has the same value.
func (p *part) value(seen map[string]bool, v, why, fix string, apply func(*guess, string)) {
	if !seen[v] {
		seen[v] = true
		*p = append(*p, choice{func(g *guess) { apply(g, v) }, why, fix})
	}
}

// signature explains what the signature of c covers.
func (e *Explanation) signature(c *Claim, s Sent, body string) {
	for _, stated := range c.stated {
		step := Step{Name: "body hash", Got: stated, Want: body}
		if stated != body {
			step.Problem, step.Fix = "the stated hash is not the SHA-256 of the body", bodyFix(stated)
		}
		e.add(step, nil)
	}
	signed, mistakes, found := c.guess(s, body)
	text := signed.text(signed.method, c.names, signed.values, signed.body)
	e.Canonical = c.forms[0].text(c.method, c.names, c.values, body)
	for _, f := range c.forms[1:] { // of the accepted forms, that which the client meant
		if other := f.text(c.method, c.names, c.values, body); found && differing(other, text) < differing(e.Canonical, text) {
			e.Canonical = other
		}
	}
	sum := sha256.Sum256([]byte(e.Canonical))
	hash := hex.EncodeToString(sum[:])
	e.StringToSign = c.scope.stringToSign(c.date, hash)
	step := Step{Name: "signature", Got: c.Signature, Want: c.scope.derive(mac, s.Secret).sign(mac, c.scope, c.date, hash)}
	if len(mistakes) > 0 {
		var whys, how []string
		for _, m := range mistakes {
			whys, how = append(whys, m.why), append(how, m.fix)
		}
		step.Problem, step.Fix = strings.Join(whys, ", and "), strings.Join(how, "; ")
		if text != e.Canonical {
			e.Signed = text
		}
	} else if !found {
		step.Problem = "the signature is of another request, or made with another secret key"
		step.Fix = "compare the canonical request with the client's, line by line; check that the secret key belongs to the access key " + c.AccessKey
	}
	e.add(step, nil)
}

// differing returns the number of lines that differ.
func differing(a, b string) (n int) {
	lines, others := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i, line := range lines {
		if i >= len(others) || others[i] != line {
			n++
		}
	}
	return n
}

// emptyHash is the SHA-256 of nothing.
const emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// bodyFix returns what to do about a hash that is not the body's.
func bodyFix(hash string) string {
	switch {
	case hash == emptyHash:
		return "hash the body that is sent; this is the hash of an empty one"
	case strings.HasPrefix(hash, "UNSIGNED") || strings.HasPrefix(hash, "STREAMING"):
		return "sign the SHA-256 of the body: unsigned and streamed bodies are refused"
	default:
		return "hash the bytes of the body exactly as they are sent"
	}
}

// guess finds what c's signature covers, with the fewest mistakes.
func (c *Claim) guess(s Sent, body string) (signed guess, mistakes []choice, found bool) {
	f := finder{claim: c, parts: []part{c.methods(), c.paths(s), c.queries(s), c.hosts(s), c.bodies(s, body), c.headers(s), c.keys(s)}}
	for n := range mistakesMax + 1 {
		if f.find(guess{values: c.values}, f.parts, n) {
			slices.Reverse(f.mistakes)
			return f.signed, f.mistakes, true
		}
	}
	return guess{values: c.values}, nil, false
}

// finder finds what a claim's signature covers.
type finder struct {
	claim    *Claim
	parts    []part
	signed   guess
	mistakes []choice // the last first
}

// find tries all choices for the parts that are left, with exactly this number of mistakes.
func (f *finder) find(g guess, left []part, mistakes int) bool {
	if len(left) == 0 {
		if mistakes > 0 {
			return false
		}
		c := f.claim
		f.signed = g
		return hmac.Equal([]byte(g.key.sign(mac, c.scope, c.date, g.hash(g.method, c.names, g.values, g.body))), []byte(c.Signature))
	}
	for _, pick := range left[0] {
		next := g
		pick.apply(&next)
		switch {
		case pick.why == "":
			if f.find(next, left[1:], mistakes) {
				return true
			}
		case mistakes > 0 && f.find(next, left[1:], mistakes-1):
			f.mistakes = append(f.mistakes, pick)
			return true
		}
	}
	return false
}

func (c *Claim) methods() (p part) {
	seen := map[string]bool{}
	set := func(g *guess, v string) { g.method = v }
	p.value(seen, c.method, "", "", set)
	for _, m := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", strings.ToLower(c.method), strings.ToUpper(c.method)} {
		p.value(seen, m, "the method "+m+" was signed, and "+c.method+" was sent", "sign the method that is sent, in upper case", set)
	}
	return p
}

func (c *Claim) paths(s Sent) (p part) {
	seen := map[string]bool{}
	set := func(g *guess, v string) { g.path = v }
	for _, f := range c.forms {
		p.value(seen, f.path, "", "", set)
	}
	raw := s.path()
	plain, _ := unescape(raw)
	p.value(seen, raw, "the path was signed encoded once", "encode each part of the path again for the canonical request: %20 becomes %2520", set)
	p.value(seen, plain, "the path was signed decoded", "sign the path as it is sent, percent-encoded", set)
	p.value(seen, escape(plain, true), "the path was signed in another spelling than sent", "send and sign the same percent-encoding", set)
	p.value(seen, escape(escape(raw, true), true), "the path was encoded once too often", "encode the path that is sent once more, not twice", set)
	other := func(path, why, fix string) { // encoded once or twice
		p.value(seen, escape(path, true), why, fix, set)
		p.value(seen, path, why, fix, set)
	}
	other(path.Clean(raw), "the path was signed without its double slashes, dots or last slash", "send and sign the same path")
	other(raw+"/", "the path was signed with a slash at its end", "send and sign the same path")
	p.value(seen, s.Target, "the query was signed as a part of the path", "put the query on the line after the path", set)
	for _, host := range s.Hosts {
		p.value(seen, "https://"+host+raw, "the whole URL was signed in place of the path", "sign the path only", set)
	}
	for i := range raw {
		if raw[i] == '/' {
			other(raw[i:], "the path was signed without "+raw[:i], "sign the path that the server gets; a proxy may have added a part of it")
		}
	}
	p.value(seen, "", "the path was signed empty", "sign / if there is no path", set)
	return p
}

func (c *Claim) queries(s Sent) (p part) {
	seen := map[string]bool{}
	set := func(g *guess, v string) { g.query = v }
	for _, f := range c.forms {
		p.value(seen, f.query, "", "", set)
	}
	pairs, _ := readPairs(s.query()) // Parse has read them
	var normal, decoded []string
	for _, one := range pairs {
		n := one.normalise()
		key, _ := unescape(one.key)
		value, _ := unescape(one.value)
		normal, decoded = append(normal, n.key+"="+n.value), append(decoded, key+"="+value)
	}
	p.value(seen, s.query(), "the query was signed as it is sent", "sort the query by its keys, percent-encode it, and write = behind each key", set)
	p.value(seen, sortedQuery(pairs), "the query was signed in another spelling", "percent-encode the query after RFC 3986, with upper-case digits", set)
	p.value(seen, strings.Join(normal, "&"), "the query was not sorted", "sort the query by its keys", set)
	slices.Sort(decoded)
	p.value(seen, strings.Join(decoded, "&"), "the query was signed decoded", "percent-encode the query", set)
	form, err := url.ParseQuery(s.query())
	if err == nil {
		p.value(seen, form.Encode(), "the query was signed as a form, with + for a space", "sign %20 for a space and %2B for a plus sign", set)
		p.value(seen, strings.ReplaceAll(form.Encode(), "+", "%20"), "a plus sign of the query was signed as a space", "send %20 for a space and %2B for a plus sign", set)
	}
	p.value(seen, "", "the query was not signed", "put the query, sorted by its keys, on the line after the path", set)
	return p
}

func (c *Claim) hosts(s Sent) (p part) {
	seen := map[string]bool{}
	set := func(g *guess, v string) { g.host = v }
	for _, f := range c.forms {
		p.value(seen, f.host, "", "", set)
	}
	sent := c.forms[0].host
	p.value(seen, withoutPort(sent), "the host was signed without its port", "sign the host as it is sent, "+sent, set)
	for _, known := range append(slices.Clone(s.Hosts), append(s.values("x-forwarded-host"), "localhost", "127.0.0.1")...) {
		for _, h := range []string{known, withoutPort(known), withoutPort(known) + sent[len(withoutPort(sent)):]} {
			p.value(seen, h, "the host "+h+" was signed, and "+sent+" was sent", "sign the host that is sent; a proxy in between has to leave the Host header alone", set)
		}
	}
	for _, port := range []string{":443", ":80"} {
		p.value(seen, withoutPort(sent)+port, "the host was signed with the port "+port[1:], "sign the host as it is sent, "+sent, set)
	}
	p.value(seen, strings.ToLower(sent), "the host was signed in lower case", "sign the host as it is sent, "+sent, set)
	p.value(seen, "", "the host was signed empty", "sign the host as it is sent, "+sent, set)
	return p
}

func (c *Claim) bodies(s Sent, body string) (p part) {
	seen := map[string]bool{}
	set := func(g *guess, v string) { g.body = v }
	p.value(seen, body, "", "", set)
	hash := func(b []byte) string {
		sum := sha256.Sum256(b)
		return hex.EncodeToString(sum[:])
	}
	const same = "hash the bytes of the body exactly as they are sent"
	p.value(seen, emptyHash, "the body hash is of an empty body", bodyFix(emptyHash), set)
	p.value(seen, "UNSIGNED-PAYLOAD", "the body was not signed", bodyFix("UNSIGNED"), set)
	p.value(seen, "", "the body hash was left out", "write the SHA-256 of the body on the last line", set)
	p.value(seen, strings.ToUpper(body), "the body hash was signed in upper case", "write the hash in lower case", set)
	p.value(seen, string(s.Body), "the body was signed in place of its hash", "write the SHA-256 of the body on the last line", set)
	p.value(seen, hash(append(slices.Clip(s.Body), '\n')), "the body was signed with a line break at its end, and sent without", same+"; curl -d @FILE drops line breaks: use --data-binary", set)
	p.value(seen, hash(bytes.TrimRight(s.Body, "\r\n")), "the body was signed without the line break at its end", same, set)
	p.value(seen, hash(bytes.ReplaceAll(s.Body, []byte("\n"), nil)), "the body was signed without its line breaks", same, set)
	p.value(seen, hash(bytes.ReplaceAll(s.Body, []byte("\n"), []byte("\r\n"))), "the body was signed with other line breaks", same, set)
	var compact, indented bytes.Buffer
	if json.Compact(&compact, s.Body) == nil {
		p.value(seen, hash(compact.Bytes()), "the JSON was signed without its spaces, and sent with them", same, set)
	}
	if json.Indent(&indented, s.Body, "", "  ") == nil {
		p.value(seen, hash(indented.Bytes()), "the JSON was signed indented, and sent in another form", same, set)
	}
	for _, stated := range c.stated {
		p.value(seen, stated, "the body hash is that of another body", bodyFix(stated), set)
	}
	return p
}

// headers returns other values of single signed headers.
func (c *Claim) headers(s Sent) part {
	p := part{{func(*guess) {}, "", ""}}
	for i, name := range c.names[:min(len(c.names), guessedHeadersMax)] {
		if name == "host" {
			continue
		}
		seen := map[string]bool{c.values[i]: true}
		set := func(g *guess, v string) {
			g.values = slices.Clone(g.values)
			g.values[i] = v
		}
		raw := s.values(name)
		folded := "trim the value of " + name + ", and fold its blanks to one"
		p.value(seen, strings.Join(raw, ","), "the value of "+name+" was signed with all its blanks", folded, set)
		p.value(seen, canonicalValue([]string{strings.Join(raw, ", ")}), "the values of "+name+" were joined with a comma and a blank", "join repeated headers with a comma alone", set)
		p.value(seen, raw[0], "only the first header "+name+" was signed", "sign all values of "+name+", joined with commas", set)
		p.value(seen, strings.ToLower(c.values[i]), "the value of "+name+" was signed in lower case", "sign the value of "+name+" as it is sent", set)
		changed := "the value of " + name + " was changed after it was signed"
		p.value(seen, "", changed+": it was signed empty", "set "+name+" before signing", set)
		media, _, _ := strings.Cut(c.values[i], ";")
		for _, v := range changes[name] {
			p.value(seen, strings.Replace(v, "MEDIA", media, 1), changed, "set "+name+" before signing, or leave it out of SignedHeaders: the library or a proxy changes it", set)
		}
	}
	return p
}

// changes has values to which libraries and proxies change headers after the signing.
var changes = map[string][]string{
	"accept":          {"*/*", "application/json"},
	"accept-encoding": {"gzip", "identity", "gzip, deflate", "gzip, deflate, br", "gzip, deflate, br, zstd"},
	"connection":      {"keep-alive", "close"},
	"content-type":    {"MEDIA", "MEDIA; charset=utf-8", "MEDIA;charset=utf-8", "MEDIA; charset=UTF-8", "MEDIA;charset=UTF-8", "application/json"},
}

// keys returns the right signing key, and those of usual mistakes in its derivation.
func (c *Claim) keys(s Sent) (p part) {
	seen := map[string]bool{}
	add := func(sc scope, secret, why, fix string) {
		key := sc.derive(mac, secret)
		p.value(seen, string(key[:]), why, fix, func(g *guess, _ string) { g.key = key })
	}
	add(c.scope, s.Secret, "", "")
	add(c.scope, strings.TrimSpace(s.Secret), "the secret key given here has blanks around it, and the client's has none", "take the blanks away here")
	add(c.scope, s.Secret+"\n", "the secret key was used with a line break at its end", "trim the secret key when it is read from a file")
	add(c.scope, s.Secret+" ", "the secret key was used with a blank at its end", "trim the secret key")
	add(c.scope, c.AccessKey, "the access key was used as the secret key", "derive the signing key from the secret key")
	prefix := c.scope.dialect.prefix()
	for _, wrong := range []string{"", AWS4.prefix(), Cloud4.prefix()} {
		key := mac([]byte(wrong+s.Secret), c.scope.day)
		for _, text := range []string{c.scope.region, c.scope.service, c.scope.dialect.terminator()} {
			key = mac(key[:], text)
		}
		p.value(seen, string(key[:]), "the secret key was used with "+cmp.Or(wrong, "nothing")+" before it", "put "+prefix+" before the secret key", func(g *guess, _ string) { g.key = key })
	}
	if day, err := time.Parse("20060102", c.scope.day); err == nil {
		for _, days := range []int{-1, 1} {
			near := c.scope
			near.day = day.AddDate(0, 0, days).Format("20060102")
			add(near, s.Secret, "the signing key was derived for "+near.day+", and the scope names "+c.scope.day, "take the day in UTC, and derive the key again each day")
		}
	}
	return p
}
