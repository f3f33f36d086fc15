package sigv4

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"facet/internal/must"
)

// job is a request for testdata/sign.py.
type job struct {
	Signer  string      `json:"signer"`
	Method  string      `json:"method"`
	URL     string      `json:"url"`
	Headers [][2]string `json:"headers"`
	Body    string      `json:"body"`
	Time    string      `json:"time"`
	Access  string      `json:"access"`
	Secret  string      `json:"secret"`
}

// signedJob is a job as botocore signed it.
type signedJob struct {
	Target  string      `json:"target"`
	Headers [][2]string `json:"headers"`
}

// botocore signs jobs.
func botocore(t *testing.T, jobs []job) []signedJob {
	t.Helper()
	python, err := filepath.Abs(filepath.Join("..", "..", "assets", "venv", "bin", "python"))
	must.Do(t, err)
	if _, err := os.Stat(python); err != nil {
		t.Fatalf("botocore signs for this test, and is not set up: run make setup (%v)", err)
	}
	input, err := json.Marshal(jobs)
	must.Do(t, err)
	command := exec.Command(python, filepath.Join("testdata", "sign.py"))
	command.Stdin = bytes.NewReader(input)
	var problems bytes.Buffer
	command.Stderr = &problems
	output, err := command.Output()
	if err != nil {
		t.Fatalf("sign.py: %v\n%s", err, problems.String())
	}
	var done []signedJob
	if err := json.Unmarshal(output, &done); err != nil || len(done) != len(jobs) {
		t.Fatalf("sign.py gave %d of %d: %v", len(done), len(jobs), err)
	}
	return done
}

// request returns the request that s would send.
func (s signedJob) request(method string) Request {
	r := Request{Method: method, Target: s.Target}
	for _, h := range s.Headers {
		r.Headers = append(r.Headers, Header{h[0], h[1]})
	}
	return r
}

func TestBotocoreIsAccepted(t *testing.T) {
	t.Parallel()
	var jobs []job
	for _, signer := range []string{"stock", "cloud", "cloud4"} {
		for _, url := range []string{
			"https://facet.test/v1.1/health",
			"https://facet.test:8443/v1.1/subjects?start=10&length=5&dir=desc",
			"https://facet.test/v1.1/subjects?b=1&a-b=2&a=3&empty=&colon=a:b&lower=%c3%a9",
			"https://facet.test/v1.1/tags/a%20b%2Fc%25d+e",
			"https://facet.test/v1.1/tags/%C3%A9%E4%BA%BA",
			"https://facet.test/v1.1/jobs/bulkregister/00000000-0000-4000-8000-000000000000/",
		} {
			for _, body := range []string{"", `{"face":"aGVsbG8="}`} {
				method := "GET"
				if body != "" {
					method = "POST"
				}
				jobs = append(jobs, job{
					signer, method, url,
					[][2]string{{"x-api-key", "key"}, {"Content-Type", "application/json"}, {"X-Spaced", "  a   b  "}},
					body, "20260506T070809Z", "AKID", "SECRET",
				})
			}
		}
	}
	now := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	for i, s := range botocore(t, jobs) {
		j := jobs[i]
		check := func(canonical Canonical, body, secret string) error {
			v := New(Config{Region: "ap-southeast-2", Service: "execute-api", Canonical: canonical, MustSign: []string{"x-api-key"}})
			c, err := v.Parse(s.request(j.Method), now)
			if err != nil {
				return err
			}
			return c.Verify(secret, sha256.Sum256([]byte(body)))
		}
		if err := check(Tolerant, j.Body, j.Secret); err != nil {
			t.Errorf("%s %s %s: %v", j.Signer, j.Method, j.URL, err)
		}
		if err := check(Tolerant, j.Body+" ", j.Secret); err == nil {
			t.Errorf("%s %s %s: accepted with another body", j.Signer, j.Method, j.URL)
		}
		if err := check(Tolerant, j.Body, j.Secret+"x"); err == nil {
			t.Errorf("%s %s %s: accepted with another secret", j.Signer, j.Method, j.URL)
		}
	}
}

// The variants are a signature without the body, one in the query, and one with a
// session token.
func TestBotocoreVariantsAreRefused(t *testing.T) {
	t.Parallel()
	var jobs []job
	for _, signer := range []string{"unsigned", "presigned", "session"} {
		jobs = append(jobs, job{
			signer, "POST", "https://facet.test/v1.1/face/extract",
			[][2]string{{"Content-Type", "application/json"}},
			"{}", "20260506T070809Z", "AKID", "SECRET",
		})
	}
	want := []string{messageMismatch, messageMissing, messageMismatch}
	v := New(Config{Region: "ap-southeast-2", Service: "execute-api"})
	for i, s := range botocore(t, jobs) {
		c, err := v.Parse(s.request("POST"), time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC))
		if err == nil {
			err = c.Verify("SECRET", sha256.Sum256([]byte("{}")))
		}
		var refused *Error
		if !errors.As(err, &refused) || refused.Message != want[i] {
			t.Errorf("%s: got %v, want %q", jobs[i].Signer, err, want[i])
		}
	}
}
