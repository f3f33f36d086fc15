package httpapi

import (
	"encoding/base64"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"facet/node/sigv4"
)

var rewrite = flag.Bool("rewrite", false, "write what the server answers into the transcripts")

// TestTranscripts sends the requests of each testdata/*.txt in order to one
// server and compares the answers. A transcript is a list of
//
//	== what is shown
//	as ACCESS-KEY          (biometric when left out, "nobody" sends no signature)
//	key NAME               (x-api-key of the application NAME; none when left out)
//	keep NAME              (the answer's "x" is {{=NAME.x}} from now on)
//	METHOD target
//	Name: value            (further headers)
//
//	body                   (one line, may be left out)
//	--
//	status, chosen headers, body
//
// In a request {{text}} stands for the base64 of text, and {{=name}} for what an
// earlier answer had between "name":" and ".
func TestTranscripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			r := start(t, nil)
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			intro, rest, _ := strings.Cut(string(text), "== ")
			got := intro
			last := map[string]string{}
			for step := range strings.SplitSeq(rest, "\n== ") {
				request, _, _ := strings.Cut(step, "\n--\n")
				got += "== " + strings.TrimRight(request, "\n") + "\n--\n" + r.play(t, request, last) + "\n"
			}
			got = strings.TrimRight(got, "\n") + "\n"
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(text), got); diff != "" {
				t.Errorf("answers differ from the transcript (-want +got):\n%s", diff)
			}
		})
	}
}

var (
	substitution = regexp.MustCompile(`\{\{(=?)([^{}]*)\}\}`)
	member       = regexp.MustCompile(`"(\w+)":"([^"]*)"`)
	requestID    = regexp.MustCompile(`\b[0-9a-f]{32}\b`)
)

// play sends one request of a transcript and returns the answer's text.
func (r *running) play(t *testing.T, text string, last map[string]string) string {
	t.Helper()
	text = substitution.ReplaceAllStringFunc(text, func(s string) string {
		m := substitution.FindStringSubmatch(s)
		if m[1] == "=" {
			return last[m[2]]
		}
		return base64.StdEncoding.EncodeToString([]byte(m[2]))
	})
	headPart, body, _ := strings.Cut(text, "\n\n")
	lines := strings.Split(headPart, "\n")[1:] // the first line is the title
	q := signed{as: "biometric", body: strings.TrimRight(body, "\n")}
	keep := ""
	for _, line := range lines {
		first, rest, _ := strings.Cut(line, " ")
		switch {
		case first == "as":
			q.as = strings.TrimPrefix(rest, "nobody")
		case first == "key":
			q.headers = append(q.headers, sigv4.Header{Name: "x-api-key", Value: (rest + strings.Repeat("x", 40))[:40]})
		case first == "keep":
			keep = rest + "."
		case strings.HasSuffix(first, ":"):
			q.headers = append(q.headers, sigv4.Header{Name: strings.TrimSuffix(first, ":"), Value: rest})
		default:
			q.method, q.target = first, rest
		}
	}
	a := r.send(q)
	if len(a.header.Get("X-Request-Id")) != 32 {
		t.Errorf("%s: no x-request-id", lines)
	}
	if want := "application/json"; a.body != "" && a.header.Get("Content-Type") != want {
		t.Errorf("%s: content type %q, want %q", lines, a.header.Get("Content-Type"), want)
	}
	for _, m := range member.FindAllStringSubmatch(a.body, -1) {
		last[m[1]] = m[2]
		if keep != "" {
			last[keep+m[1]] = m[2]
		}
	}
	out := fmt.Sprintln(a.status)
	for _, name := range []string{"Allow", "Retry-After"} {
		if v := a.header.Get(name); v != "" {
			out += name + ": " + v + "\n"
		}
	}
	if a.body != "" {
		out += requestID.ReplaceAllString(a.body, "REQUEST-ID") + "\n"
	}
	return out
}
