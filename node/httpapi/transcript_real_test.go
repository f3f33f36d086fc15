package httpapi_test

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"facet/internal/must"
	"facet/node/nodetest"
	"facet/node/sigv4"
	"facet/raftfsm/metafsm"
	"facet/router"
)

var rewrite = flag.Bool("rewrite", false, "write what the service answers into the transcripts")

// TestTranscripts sends the requests of each testdata/*.txt in order to one node of a
// cluster with the face engine, and compares the answers. A transcript is a list of
//
//	== what is shown
//	as NAME                (admin, biometric, reader; biometric when left out. "other" is
//	                       another tenant's admin, "nobody" sends no signature, anna and
//	                       ben are reviewers, door may only search)
//	key NAME               (x-api-key of the application NAME; none when left out)
//	keep NAME              (the answer's "x" is {{=NAME.x}} from now on)
//	again                  (sends the bytes of the step before)
//	while TEXT             (repeats the request while the answer contains TEXT)
//	METHOD target
//	Name: value            (further headers)
//
//	body                   (one line, may be left out)
//	--
//	status, chosen headers, body
//
// In a request {{x.jpg}} stands for the base64 of a sample photo, another {{text}} for
// the base64 of text, and {{=name}} for what an earlier answer had between "name":"
// and ", and {{=etag}} for its ETag. In answers, ids, API keys, cursors, tokens and times have numbers in order of appearance;
// shards and indexes of logs are 1.
// Scores and attributes may be a little off: processors round differently.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	s := start(t, nodetest.Options{Bucket: "file://" + t.TempDir()})
	s.waitLevel(t)
	t.Run("files", func(t *testing.T) {
		for i, file := range files {
			t.Run(filepath.Base(file), func(t *testing.T) {
				t.Parallel()
				newScript(t, s, i).play(file)
			})
		}
	})
}

// waitLevel waits until each node answers in the newest forms.
func (s *service) waitLevel(t *testing.T) {
	t.Helper()
	end := time.Now().Add(time.Minute)
	for _, n := range s.Nodes {
		for n.Node.Status(t.Context()).Level != metafsm.Level {
			if time.Now().After(end) {
				t.Fatal("the cluster does not come to its level")
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// script plays one transcript.
type script struct {
	t       *testing.T
	base    string
	clients map[string]*nodetest.Client
	apiKeys map[string]string // by name of the application
	last    map[string]string // values of earlier answers
	sent    nodetest.Request  // by the last step
	steps   int
	// names contains the text that stands for an id, API key, cursor, token or time in transcripts.
	names map[string]string
	// times, cursors and tokens count those that have a text; they have numbers of their own.
	times, cursors, tokens int
}

func newScript(t *testing.T, s *service, n int) *script {
	t.Helper()
	own, other := s.tenant(t, t.Name(), n), s.Client(t.Name()+" other")
	for _, name := range []string{"obama.jpg", "biden.jpg", "hubble_deep_field.jpg", "behind.jpg"} {
		own.put(t, name, sample(t, name))
	}
	return &script{
		t: t, base: own.base, apiKeys: map[string]string{"nobody": strings.Repeat("x", 40)}, last: map[string]string{}, names: map[string]string{},
		clients: map[string]*nodetest.Client{
			"admin": own.admin, "biometric": own.biometric, "reader": own.reader, "other": other, "nobody": other,
			"stranger": other.Keyed(router.AccessKey{ID: "stranger", Secret: "secret"}),
			"anna":     own.keyed(t, s, own.admin, router.KeyTerms{Role: router.RoleReviewer, Holder: "anna"}),
			"ben":      own.keyed(t, s, own.admin, router.KeyTerms{Role: router.RoleReviewer, Holder: "ben"}),
			"door":     own.keyed(t, s, own.admin, router.KeyTerms{Role: router.RoleSearchOnly, Holder: "door"}),
		},
	}
}

// play plays a file's steps and compares or rewrites it.
func (s *script) play(file string) {
	text, err := os.ReadFile(file)
	must.Do(s.t, err)
	got, rest, _ := strings.Cut(string(text), "== ")
	for step := range strings.SplitSeq(rest, "\n== ") {
		request, before, _ := strings.Cut(step, "\n--\n")
		answer := s.step(request)
		if near(strings.TrimRight(before, "\n"), strings.TrimRight(answer, "\n")) {
			answer = strings.TrimRight(before, "\n") + "\n"
		}
		got += "== " + strings.TrimRight(request, "\n") + "\n--\n" + answer + "\n"
	}
	got = strings.TrimRight(got, "\n") + "\n"
	if *rewrite {
		must.Do(s.t, os.WriteFile(file, []byte(got), 0o644))
		return
	}
	if diff := cmp.Diff(string(text), got); diff != "" {
		s.t.Errorf("answers differ from the transcript (-want +got):\n%s", diff)
	}
}

var (
	substitution = regexp.MustCompile(`\{\{(=?)([^{}]*)\}\}`)
	member       = regexp.MustCompile(`"(\w+)":"([^"]*)"`)
	keyOfName    = regexp.MustCompile(`"name":"([^"]*)"[^{}]*?"apiKey":"(\w{40})"`)
	requestID    = regexp.MustCompile(`\b[0-9a-f]{32}\b`)
	changing     = regexp.MustCompile(`[0-9A-Za-z_-]{300,}|\bAQ[0-9A-Za-z_-]{46}|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b[0-9A-Za-z]{40}\b|\b\d{4}-\d\d-\d\dT[0-9:.]{12}\+00:00`)
	places       = regexp.MustCompile(`("list":\[|"shard":|"index":)\d+`)
	scores       = regexp.MustCompile(`\[[\d,nul]+\]`)
	measured     = regexp.MustCompile(`(left|top|right|bottom|x|y|faceScore|frontalFaceScore|faceQualityScore|faceRoll|facePan|faceTilt|score|subjectScore|native|component)(\\?":\\?"?)([-+.e\d]+)`)
)

// step sends one request and returns the answer's text.
func (s *script) step(text string) string {
	s.t.Helper()
	text = substitution.ReplaceAllStringFunc(text, func(found string) string {
		m := substitution.FindStringSubmatch(found)
		if m[1] == "=" {
			return s.last[m[2]]
		}
		return encoded(s.t, m[2])
	})
	headPart, body, _ := strings.Cut(text, "\n\n")
	lines := strings.Split(headPart, "\n")
	as, key, keep, while, again := "biometric", "", "", "", false
	var method, target string
	var headers []sigv4.Header
	for _, line := range lines[1:] { // the first line is the title
		first, rest, _ := strings.Cut(line, " ")
		switch {
		case first == "as":
			as = rest
		case first == "key":
			key = rest
		case first == "keep":
			keep = rest + "."
		case first == "again":
			again = true
		case first == "while":
			while = rest
		case strings.HasSuffix(first, ":"):
			headers = append(headers, sigv4.Header{Name: strings.TrimSuffix(first, ":"), Value: rest})
		default:
			method, target = first, rest
		}
	}
	client := *s.clients[as]
	if client.APIKey = s.apiKeys[key]; key != "" && client.APIKey == "" {
		s.t.Fatalf("%s: there is no application %s", lines[0], key)
	}
	if !again {
		s.sign(&client, as == "nobody", method, target, strings.TrimRight(body, "\n"), headers)
	}
	a := s.send(&client, lines[0], while)
	for _, m := range keyOfName.FindAllSubmatch(a.Body, -1) {
		s.apiKeys[string(m[1])] = string(m[2])
	}
	for _, m := range append(member.FindAllStringSubmatch(string(a.Body), -1), []string{"", "etag", a.Header.Get("ETag")}) {
		s.last[m[1]] = m[2]
		if keep != "" {
			s.last[keep+m[1]] = m[2]
		}
	}
	return s.shown(a)
}

// sign makes the request of a step. Each has another header: two requests that are
// equal byte for byte would be a request and its retry.
func (s *script) sign(c *nodetest.Client, unsigned bool, method, target, body string, headers []sigv4.Header) {
	s.t.Helper()
	s.steps++
	headers = append(headers, sigv4.Header{Name: "x-step", Value: strconv.Itoa(s.steps)})
	var raw any
	if body != "" {
		raw = []byte(body)
	}
	var err error
	if s.sent, err = c.Sign(s.base, method, target, raw, headers...); err != nil {
		s.t.Fatal(err)
	}
	if unsigned {
		s.sent.Headers = headers
	}
}

// send sends the request of a step, and once more as long as the answer contains while.
func (s *script) send(c *nodetest.Client, title, while string) nodetest.Answer {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
		a, err := c.Send(ctx, s.base, s.sent)
		cancel()
		if err != nil {
			s.t.Fatalf("%s: %v", title, err)
		}
		if len(a.Header.Get("X-Request-Id")) != 32 {
			s.t.Errorf("%s: no x-request-id", title)
		}
		if got := a.Header.Get("Content-Type"); len(a.Body) > 0 && got != "application/json" {
			s.t.Errorf("%s: content type %q", title, got)
		}
		if while == "" || !strings.Contains(string(a.Body), while) || time.Now().After(end) {
			return a
		}
	}
}

// shown returns the text of an answer in a transcript.
func (s *script) shown(a nodetest.Answer) string {
	out := fmt.Sprintln(a.Status)
	for _, name := range []string{"Allow", "Retry-After"} {
		if v := a.Header.Get(name); v != "" {
			out += name + ": " + v + "\n"
		}
	}
	if len(a.Body) == 0 {
		return out
	}
	body := requestID.ReplaceAllString(string(a.Body), "REQUEST-ID")
	body = places.ReplaceAllString(body, "${1}1")
	return out + changing.ReplaceAllStringFunc(body, s.name) + "\n"
}

// name returns the text that stands for an id, an API key, a cursor, a token or a time.
func (s *script) name(found string) string {
	if s.names[found] == "" {
		switch n := len(s.names) + 1 - s.times - s.cursors - s.tokens; {
		case len(found) >= 300:
			s.tokens++
			s.names[found] = fmt.Sprintf("TOKEN%d", s.tokens)
		case len(found) == 36:
			s.names[found] = fmt.Sprintf("00000000-0000-4000-8000-%012d", n)
		case len(found) == 40:
			s.names[found] = fmt.Sprintf("APIKEY%034d", n)
		case len(found) == 48:
			s.cursors++
			s.names[found] = fmt.Sprintf("CURSOR%042d", s.cursors)
		default:
			s.times++
			s.names[found] = time.Unix(int64(s.times), 0).UTC().Format("2006-01-02T15:04:05.000-07:00")
		}
	}
	return s.names[found]
}

// apart returns the scores of an array as members of their own.
func apart(array string) string {
	return strings.NewReplacer("[", "\"score\":", ",", "\"score\":").Replace(array)
}

// near reports whether two answers are equal but for a little in scores and
// attributes.
func near(want, got string) bool {
	want, got = scores.ReplaceAllStringFunc(want, apart), scores.ReplaceAllStringFunc(got, apart)
	a, b := measured.FindAllStringSubmatch(want, -1), measured.FindAllStringSubmatch(got, -1)
	if len(a) != len(b) || measured.ReplaceAllString(want, "$1$2") != measured.ReplaceAllString(got, "$1$2") {
		return false
	}
	for i := range a {
		x, _ := strconv.ParseFloat(a[i][3], 64)
		y, _ := strconv.ParseFloat(b[i][3], 64)
		within := 1.5 // pixels, degrees
		switch {
		case a[i][1] == "score" || a[i][1] == "subjectScore":
			within = 20
		case a[i][1] == "native": // its unit is that of the measure
			within = .01 + .01*math.Abs(x)
		case strings.HasSuffix(a[i][1], "Score"):
			within = .01
		}
		if math.Abs(x-y) > within {
			return false
		}
	}
	return true
}
