package sigv4

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"facet/internal/must"
)

// disagreement returns how an explanation contradicts the outcome of a verification, or "".
func disagreement(e Explanation, err error) string {
	first := e.first()
	switch {
	case e.Accepted != (err == nil):
		return fmt.Sprintf("explained as accepted %t, but %v", e.Accepted, err)
	case e.Accepted != (first.Problem == ""):
		return fmt.Sprintf("accepted %t, with the problem %q", e.Accepted, first.Problem)
	case first.Problem != "" && first.Fix == "":
		return fmt.Sprintf("no fix for %q", first.Problem)
	case err != nil && !strings.Contains(err.Error(), e.Message):
		return fmt.Sprintf("the message %q for %v", e.Message, err)
	}
	return ""
}

// first returns the first step that refuses.
func (e Explanation) first() Step {
	for _, s := range e.Steps {
		if s.Problem != "" {
			return s
		}
	}
	return Step{}
}

func TestEveryRefusalHasFix(t *testing.T) {
	t.Parallel()
	literal := regexp.MustCompile(`(?:refuse\([^\n]*, |errors\.New\()"([^"]+)"\)`)
	found := 0
	for _, name := range []string{"verify.go", "canonical.go"} {
		text, err := os.ReadFile(name)
		must.Do(t, err)
		for _, m := range literal.FindAllStringSubmatch(string(text), -1) {
			found++
			if fixes[m[1]] == "" && !slices.Contains([]string{"expired", "not yet current", "signature differs, or the stated hash is not the body's"}, m[1]) {
				t.Errorf("%s: no fix for %q", name, m[1])
			}
		}
	}
	if found < 20 {
		t.Errorf("found %d refusals only", found)
	}
}

// mistake is a signature of botocore that a change spoils, and what the explanation says of it.
type mistake struct {
	job    job
	spoil  func(r *Request, body *string, secret *string)
	v      *Verifier
	wanted string // in the first problem or its fix
}

// Each mistake is planted into a request that botocore has signed rightly, or is botocore's own.
func TestPlantedMistakesAreNamed(t *testing.T) {
	t.Parallel()
	set := func(name, value string) func(*Request, *string, *string) {
		return func(r *Request, _, _ *string) { *r = changed(*r, name, func(string) string { return value }) }
	}
	take := func(name string) func(*Request, *string, *string) {
		return func(r *Request, _, _ *string) { *r = without(*r, name) }
	}
	target := func(text string) func(*Request, *string, *string) {
		return func(r *Request, _, _ *string) { r.Target = text }
	}
	config := func(c Config) *Verifier {
		if c.Region == "" {
			c.Region = "ap-southeast-2"
		}
		c.Service = "execute-api"
		return New(c)
	}
	strict := config(Config{Canonical: Strict})
	stock := job{"stock", "POST", "https://facet.test:8443/v1.1/tags/a%20b?b=1&a=x%20y", [][2]string{{"x-api-key", "key"}, {"Content-Type", "application/json"}}, `{"face": "aGVsbG8="}`, "20260506T070809Z", "AKID", "SECRET"}
	as := func(change func(j *job)) job {
		j := stock
		change(&j)
		return j
	}
	unsigned := as(func(j *job) { j.Signer = "unsigned" })
	list := map[string]mistake{
		"old":               {job: as(func(j *job) { j.Time = "20260506T070109Z" }), wanted: "7m0s behind the server's clock"},
		"old, twice":        {job: as(func(j *job) { j.Time = "20260506T070109Z" }), spoil: func(r *Request, _, _ *string) { *r = with(*r, AmzDate, "20260506T070109Z") }, wanted: "7m0s behind"},
		"early":             {job: as(func(j *job) { j.Time = "20260506T080809Z" }), wanted: "1h0m0s ahead of the server's clock"},
		"empty body":        {spoil: func(_ *Request, body, _ *string) { *body = "{}" }, job: as(func(j *job) { j.Body = "" }), wanted: "the body hash is of an empty body"},
		"unsigned body":     {job: unsigned, wanted: "unsigned and streamed bodies are refused"},
		"spaces dropped":    {spoil: func(_ *Request, body, _ *string) { *body += "\n" }, wanted: "signed without the line break at its end"},
		"JSON rewritten":    {spoil: func(_ *Request, body, _ *string) { *body = `{  "face":"aGVsbG8="}` }, job: as(func(j *job) { j.Body = `{"face":"aGVsbG8="}` }), wanted: "signed without its spaces"},
		"host without port": {v: strict, spoil: set("host", "facet.test:8443"), job: as(func(j *job) { j.URL = "https://facet.test/v1.1/health" }), wanted: "the host was signed without its port"},
		"host behind a proxy": {spoil: func(r *Request, _, _ *string) {
			set("host", "10.0.0.7:7420")(r, nil, nil)
			*r = with(*r, "X-Forwarded-Host", "facet.test:8443")
		}, wanted: "the host facet.test:8443 was signed, and 10.0.0.7:7420 was sent"},
		"path once":      {v: strict, job: as(func(j *job) { j.Signer, j.URL = "once", "https://facet.test:8443/v1.1/tags/a%20b" }), wanted: "the path was signed encoded once"},
		"path cut":       {spoil: target("/facet/v1.1/tags/a%20b?b=1&a=x%20y"), wanted: "the path was signed without /facet"},
		"slash added":    {spoil: target("/v1.1/tags/a%20b/?b=1&a=x%20y"), wanted: "double slashes, dots or last slash"},
		"query added":    {spoil: target("/v1.1/tags/a%20b?b=1"), job: as(func(j *job) { j.URL = "https://facet.test:8443/v1.1/tags/a%20b" }), wanted: "the query was not signed"},
		"plus sign":      {v: strict, spoil: target("/v1.1/tags/a%20b?b=1&a=x+y"), wanted: "send %20 for a space"},
		"query spelling": {v: strict, job: as(func(j *job) { j.URL = "https://facet.test:8443/v1.1/health?b=%3a&a=:" }), wanted: "the query was signed"},
		"method":         {spoil: func(r *Request, _, _ *string) { r.Method = "PUT" }, wanted: "the method POST was signed, and PUT was sent"},
		"line in secret": {spoil: func(_ *Request, _, secret *string) { *secret = "SECRET" }, job: as(func(j *job) { j.Secret = "SECRET\n" }), wanted: "with a line break at its end"},
		"other secret":   {spoil: func(_ *Request, _, secret *string) { *secret = "OTHER" }, wanted: "belongs to the access key AKID"},
		"content type":   {spoil: set("content-type", "application/json; charset=utf-8"), wanted: "the value of content-type was changed after it was signed"},
		"two at once":    {spoil: func(r *Request, body, _ *string) { r.Method = "PUT"; *body += "\n" }, wanted: "the method POST was signed, and PUT was sent, and the body was signed without"},
		"absent":         {spoil: take("x-api-key"), wanted: "x-api-key is signed and not sent"},
		"no date":        {spoil: take(AmzDate), wanted: "send the header x-cloud-date or x-amz-date"},
		"no signature":   {spoil: take("authorization"), wanted: "send the signature in an Authorization header"},
		"presigned":      {job: as(func(j *job) { j.Signer = "presigned" }), wanted: "no Authorization header"},
		"session":        {job: as(func(j *job) { j.Signer = "session" }), wanted: "session tokens are not accepted"},
		"region":         {v: config(Config{Region: "eu-west-1"}), wanted: "other region"},
		"must sign":      {v: config(Config{MustSign: []string{"idempotency-key"}}), spoil: func(r *Request, _, _ *string) { *r = with(*r, "Idempotency-Key", "1") }, wanted: "must-sign names it"},
	}
	names := slices.Sorted(maps.Keys(list))
	jobs := make([]job, len(names))
	for i, name := range names {
		if jobs[i] = list[name].job; jobs[i].Signer == "" {
			jobs[i] = stock
		}
	}
	now := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	for i, s := range botocore(t, jobs) {
		m := list[names[i]]
		r, body, secret := s.request(jobs[i].Method), jobs[i].Body, jobs[i].Secret
		if m.spoil != nil {
			m.spoil(&r, &body, &secret)
		}
		if m.v == nil {
			m.v = verifier
		}
		e := m.v.Explain(Sent{Request: r, Body: []byte(body), Secret: secret}, now)
		if first := e.first(); e.Accepted || !strings.Contains(first.Problem+first.Fix, m.wanted) {
			t.Errorf("%s: accepted %t, %+v, want %q", names[i], e.Accepted, first, m.wanted)
		}
	}
}

func TestExplanationShowsNoSecret(t *testing.T) {
	t.Parallel()
	r := changed(example(t, AWS4, CloudDate), "host", func(string) string { return "other" })
	e := verifier.Explain(Sent{Request: r, Body: []byte("body"), Secret: "SECRET"}, signedAt)
	if text := fmt.Sprintf("%+v", e); strings.Contains(text, "SECRET") || e.Canonical == "" {
		t.Error(text)
	}
}
