package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"facet/node/sigv4"
)

const (
	mutations = 8000
	// mutationWait is the longest wait for an answer. A node waits for the rest of a body
	// whose declared length a mutation has raised.
	mutationWait = 1200 * time.Millisecond
	mutators     = 12
)

// mutant is a signed request after a change.
type mutant struct {
	node int
	raw  []byte
	of   []byte // the request as it was signed
	what string
}

// mutate changes signed requests and sends them. A node may take a changed request only if
// it has the meaning of the signed one.
func (a *attack) mutate(c *tally) error {
	r := rand.New(rand.NewPCG(a.seed, 1))
	bases, err := a.signedRequests()
	if err != nil {
		return err
	}
	// Each byte of each request is flipped in turn, at a random bit; then come other changes.
	var list []mutant
	for node, base := range bases {
		for at := range base {
			bit := byte(1) << r.IntN(8)
			raw := bytes.Clone(base)
			raw[at] ^= bit
			list = append(list, mutant{node % nodes, raw, base, fmt.Sprintf("bit %d of byte %d", bit, at)})
		}
	}
	for len(list) < mutations {
		n := r.IntN(len(bases))
		raw, what := change(r, bases[n])
		list = append(list, mutant{n % nodes, raw, bases[n], what})
	}
	var accepted, refused, silent atomic.Int64
	lines := make(chan *line, mutators)
	for i := range mutators {
		lines <- &line{target: a.target, from: address{3, byte(i)}, wait: mutationWait}
	}
	each(len(list), mutators, func(i int) {
		m := list[i]
		if bytes.Equal(m.raw, m.of) {
			return
		}
		l := <-lines
		defer func() { lines <- l }()
		if l.node != m.node {
			l.close()
			l.node = m.node
		}
		c.try()
		got, err := l.do(m.raw)
		switch {
		case err != nil: // closed, or the node waits for more
			silent.Add(1)
			l.close()
		case got.refusedSignature():
			refused.Add(1)
		default:
			accepted.Add(1)
			was, _ := meaningOf(m.of)
			if is, ok := meaningOf(m.raw); !ok || !is.equal(was) {
				c.got("%s: %s for %.300q", m.what, got, m.raw)
			}
		}
	})
	for range mutators {
		(<-lines).close()
	}
	if silent.Load() > int64(len(list))/20 {
		return fmt.Errorf("%d of %d changed requests got no answer: that is no refusal", silent.Load(), len(list))
	}
	c.note("%d refused, %d without an answer, %d of the same meaning taken", refused.Load(), silent.Load(), accepted.Load())
	return nil
}

// signedRequests returns good requests of all kinds and dialects, one after the other for
// each node. It sends each once, so that a node has seen the key at work and checks each
// later signature in full.
func (a *attack) signedRequests() (list [][]byte, err error) {
	v := a.victim
	key, idempotent := apiKey(v.gallery.apiKey), sigv4.Header{Name: "idempotency-key", Value: "attack  of 1"}
	json := sigv4.Header{Name: "content-type", Value: "application/json"}
	add := func(node int, q request) {
		list = append(list, q.raw())
		for i := range mutators + 1 { // each address has to prove the key
			for of := range 2 {
				var got answer
				got, err2 := a.exchange(node, address{3, byte(i)}, q.raw(), 0)
				if err2 != nil || got.refusedSignature() {
					err = fmt.Errorf("a good request (%d): %s, %w", of, got, err2)
				}
			}
		}
	}
	add(0, a.sign(0, v.biometric, http.MethodGet, "/v1.1/subjects?start=0&length=5&dir=desc", nil, key))
	add(1, a.sign(1, v.biometric, http.MethodPut, "/v1.1/tags/"+v.tag, `{"newName":"`+v.tag+`"}`, key, idempotent, json))
	add(2, a.sign(2, v.biometric, http.MethodPost, "/v1.1/face/extract", `{"faces":"QUJDRA=="}`, key, json))
	add(0, a.sign(0, v.biometric, http.MethodGet, "/v1.1/subjects/"+v.subjects[0].ID+"/events", nil, key))
	add(1, a.sign(1, v.biometric, http.MethodDelete, "/v1.1/tags/a%2Fb%20c+%C3%A9", nil, key))
	add(2, a.sign(2, v.biometric, http.MethodGet, "/v1.1/health", nil))
	return list, err
}

// change makes one or two random changes to a request.
func change(r *rand.Rand, base []byte) (raw []byte, what string) {
	changes := []func(*rand.Rand, string) (string, string){
		flipped, flipped, replaced, swapped, inserted, dropped, respelled, respelled, headerAdded, headerMoved, listed, dated, signature,
	}
	text := string(base)
	for range 1 + r.IntN(2) {
		var one string
		text, one = changes[r.IntN(len(changes))](r, text)
		what += one + " "
	}
	return []byte(text), strings.TrimSpace(what)
}

func flipped(r *rand.Rand, s string) (string, string) {
	b, at := []byte(s), r.IntN(len(s))
	b[at] ^= 1 << r.IntN(8)
	return string(b), fmt.Sprint("a bit of byte ", at)
}

func replaced(r *rand.Rand, s string) (string, string) {
	b, at := []byte(s), r.IntN(len(s))
	b[at] = " \t\r\n%?&=/+;,:.A0\x00\xff"[r.IntN(18)]
	return string(b), fmt.Sprint("byte ", at)
}

func swapped(r *rand.Rand, s string) (string, string) {
	b, at := []byte(s), r.IntN(len(s)-1)
	b[at], b[at+1] = b[at+1], b[at]
	return string(b), fmt.Sprint("two letters at ", at)
}

func inserted(r *rand.Rand, s string) (string, string) {
	at := r.IntN(len(s))
	more := []string{" ", "\t", "%20", "%2f", "/", "a", ";", ",", "=", "&", "\r\n", "?", "&a=b", "0"}[r.IntN(14)]
	return s[:at] + more + s[at:], fmt.Sprintf("%q at %d", more, at)
}

func dropped(r *rand.Rand, s string) (string, string) {
	at := r.IntN(len(s))
	end := min(len(s), at+1+r.IntN(4))
	return s[:at] + s[end:], fmt.Sprintf("without bytes %d to %d", at, end)
}

// respelled changes the spelling: some of these keep the meaning.
func respelled(r *rand.Rand, s string) (string, string) {
	pairs := [][2]string{
		{"?start=0&length=5", "?length=5&start=0"},
		{"start=0", "%73tart=0"},
		{"length=5", "length=%35"},
		{"dir=desc", "dir=%64esc"},
		{"subjects", "%73ubjects"},
		{"/v1.1/", "/v1%2E1/"},
		{"/v1.1/", "/v1/"},
		{"%2F", "%2f"},
		{"%2F", "/"},
		{"%20", "+"},
		{"%20", " "},
		{"+", "%2B"},
		{"+", "%20"},
		{"%C3%A9", "e"},
		{"%C3%A9", "%65%CC%81"},
		{"start=0", "start=0&start=1"},
		{"start=0", "start"},
		{"dir=desc", "dir=desc&"},
		{"dir=desc", "dir=asc"},
		{"%2Fb", "%252Fb"},
		{"tags/", "tags/%2e%2e/"},
		{"GET ", "HEAD "},
		{"GET ", "POST "},
		{"PUT ", "POST "},
		{"POST ", "PUT "},
		{"DELETE ", "GET "},
		{"attack  of 1", "attack of 1"},
		{"attack  of 1", "attack of 2"},
		{"host: ", "HOST: "},
		{"host: ", "host:"},
		{"host: ", "host: \t"},
		{"host: 127.0.0.1", "host: localhost"},
		{"Credential", "credential"},
		{", Signature", ",Signature"},
		{"SignedHeaders=host;", "SignedHeaders="},
		{"SignedHeaders=", "SignedHeaders=accept;"},
		{"AWS4-HMAC-SHA256", "CLOUD4-HMAC-SHA256"},
		{"aws4_request", "cloud4_request"},
		{"x-cloud-date: ", "x-amz-date: "},
		{"ap-southeast-2", "us-east-1"},
		{"execute-api", "s3"},
		{"x-api-key: ", "x_api_key: "},
		{"\r\nx-api-key", "\r\nx-api-key: z\r\nx-old-key"},
		{`{"faces"`, ` {"faces"`},
		{`"faces"`, `"Faces"`},
		{"QUJDRA==", "QUJDRA"},
		{"newName", "newname"},
		{"Content-Length: ", "Content-Length: 0"},
		{"Content-Length: ", "Content-Length: +"},
	}
	for range 20 {
		p := pairs[r.IntN(len(pairs))]
		if strings.Contains(s, p[0]) {
			return strings.Replace(s, p[0], p[1], 1), fmt.Sprintf("%q for %q", p[1], p[0])
		}
	}
	return flipped(r, s)
}

// headerAdded adds a header that the signature does not cover.
func headerAdded(r *rand.Rand, s string) (string, string) {
	header := []string{
		"x-api-key: z", "idempotency-key: z", "x-amz-content-sha256: UNSIGNED-PAYLOAD", "x-cloud-content-sha256: z", "x-amz-security-token: z", "x-amz-date: 20200101T000000Z",
		"x-cloud-date: 20200101T000000Z", "authorization: z", "host: z", "x-http-method-override: DELETE", "x-original-url: /api/galleries", "x-rewrite-url: /api/galleries",
		"x-forwarded-host: z", "x-forwarded-for: 127.0.0.1", "content-encoding: gzip", "content-type: text/plain", "x-amz-decoded-content-length: 1", "accept: z",
	}[r.IntN(18)]
	return strings.Replace(s, "\r\n", "\r\n"+header+"\r\n", 1), header
}

// headerMoved moves a header to the front.
func headerMoved(r *rand.Rand, s string) (string, string) {
	head, body, _ := strings.Cut(s, "\r\n\r\n")
	lines := strings.Split(head, "\r\n")
	if len(lines) < 3 {
		return flipped(r, s)
	}
	n := 1 + r.IntN(len(lines)-1)
	lines[1], lines[n] = lines[n], lines[1]
	return strings.Join(lines, "\r\n") + "\r\n\r\n" + body, fmt.Sprint("header ", n, " first")
}

// listed changes the list of signed headers.
func listed(r *rand.Rand, s string) (string, string) {
	before, rest, ok := strings.Cut(s, "SignedHeaders=")
	list, after, ok2 := strings.Cut(rest, ",")
	if !ok || !ok2 {
		return flipped(r, s)
	}
	names := strings.Split(list, ";")
	switch n := r.IntN(len(names)); r.IntN(4) {
	case 0:
		names = append(names[:n:n], names[n+1:]...)
	case 1:
		names = append(names, names[n])
	case 2:
		names[n], names[0] = names[0], names[n]
	default:
		names[n] = strings.ToUpper(names[n])
	}
	now := strings.Join(names, ";")
	return before + "SignedHeaders=" + now + "," + after, "signed headers " + now
}

// dated changes a digit of the date or of the day in the scope.
func dated(r *rand.Rand, s string) (string, string) {
	day := time.Now().UTC().Format("20060102")
	at := strings.Index(s, day)
	if r.IntN(2) == 0 {
		at = strings.LastIndex(s, day)
	}
	if at < 0 {
		return flipped(r, s)
	}
	b := []byte(s)
	n := at + r.IntN(len(day))
	b[n] = '0' + byte(r.IntN(10))
	return string(b), fmt.Sprint("a digit of the date at ", n)
}

// signature replaces the signature.
func signature(r *rand.Rand, s string) (string, string) {
	before, rest, ok := strings.Cut(s, "Signature=")
	if !ok || len(rest) < 64 {
		return flipped(r, s)
	}
	was := rest[:64]
	now := []string{
		"", strings.Repeat("0", 64), strings.ToUpper(was), was[:63], was + "0", was[1:] + was[:1], was[:32] + strings.Repeat("f", 32), " " + was, was[:62] + "%61", was + "," + was,
	}[r.IntN(10)]
	return before + "Signature=" + now + rest[64:], "signature " + now
}
