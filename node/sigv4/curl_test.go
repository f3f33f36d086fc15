package sigv4

import (
	"crypto/sha256"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"facet/internal/must"
)

// curlServer starts a TLS server that checks signatures and answers with the text
// of the refusal. ca is the file with its certificate.
func curlServer(t *testing.T, v *Verifier) (url, ca string) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		request := Request{Method: r.Method, Target: r.RequestURI, Headers: []Header{{"Host", r.Host}}}
		for name, values := range r.Header {
			for _, value := range values {
				request.Headers = append(request.Headers, Header{name, value})
			}
		}
		claim, err := v.Parse(request, time.Now())
		if err == nil {
			err = claim.Verify("SECRET", sha256.Sum256(body))
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		if strings.Contains(claim.Query(), "%2B") { // no request here has a plus sign in its query
			http.Error(w, "a space became a plus sign", http.StatusBadRequest)
		}
	}))
	t.Cleanup(server.Close)
	ca = filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	must.Do(t, os.WriteFile(ca, block, 0o600))
	return server.URL, ca
}

// curl runs curl with a signature of one dialect and returns the answer's status
// and text.
func curl(t *testing.T, ca, spelling, secret string, args ...string) (status, text string) {
	t.Helper()
	command := exec.Command("curl", append([]string{
		"--silent", "--show-error", "--cacert", ca, "--aws-sigv4", spelling + ":ap-southeast-2:execute-api",
		"--user", "AKID:" + secret, "--write-out", "\n%{http_code}",
	}, args...)...)
	command.Stdin = strings.NewReader(`{"from":"stdin"}`)
	out, err := command.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			t.Fatalf("curl %v: %v: %s", args, err, exit.Stderr)
		}
		t.Fatalf("curl signs for this test, and does not run: %v", err)
	}
	cut := strings.LastIndexByte(string(out), '\n')
	return string(out[cut+1:]), strings.TrimSpace(string(out[:cut]))
}

func TestCurlIsAcceptedInBothDialects(t *testing.T) {
	t.Parallel()
	url, ca := curlServer(t, New(Config{Region: "ap-southeast-2", Service: "execute-api", MustSign: []string{"idempotency-key"}}))
	big := filepath.Join(t.TempDir(), "big")
	must.Do(t, os.WriteFile(big, []byte(`{"face":"`+strings.Repeat("A", 3<<20)+`"}`), 0o600))
	now := time.Now().UTC().Format(dateFormat)
	for _, spelling := range []string{"aws:cloud", "cloud:cloud", "aws:amz"} {
		for _, args := range [][]string{
			{url + "/v1.1/health"},
			{url + "/v1.1/subjects?start=1&length=2&dir=desc"}, // sent unsorted
			{url + "/v1.1/subjects?z&a=%20b&m="},
			{url + "/v1.1/tags/a%20b%2Fc+d"},
			{url + "/v1.1/tags/%C3%A9"},
			{"-G", "--data-urlencode", "externalId=a b", url + "/v1.1/subjects"}, // sent as a+b
			{"-X", "DELETE", url + "/v1.1/subjects/x"},
			{"-H", "x-api-key: key", "-H", "content-type: application/json", "-H", "accept: application/json", "--data-binary", "@" + big, url + "/v1.1/subjects"},
			{"--json", `{"probe":"eA=="}`, url + "/v1.1/face/search"},
			{"-d", "@-", url + "/v1.1/face/search"},
			{"-H", "Idempotency-Key: door-7", "--json", `{"face":"eA=="}`, url + "/v1.1/subjects"},
			{"-H", "X-Spaced:   a   b  ", url + "/v1.1/health"},
			{"-H", "Host: facet.example:8443", url + "/v1.1/health"},
		} {
			if status, text := curl(t, ca, spelling, "SECRET", args...); status != "200" {
				t.Errorf("%s %v: %s %s", spelling, args, status, text)
			}
		}
	}
	if status, text := curl(t, ca, "aws:cloud", "SECRET", "-H", "x-cloud-date: "+now, url+"/v1.1/health"); status != "200" {
		t.Errorf("curl with the date header set, which it sends twice: %s %s", status, text)
	}
}

func TestCurlIsRefused(t *testing.T) {
	t.Parallel()
	url, ca := curlServer(t, New(Config{Region: "ap-southeast-2", Service: "execute-api"}))
	old := time.Now().Add(-10 * time.Minute).UTC().Format(dateFormat)
	f := func(want, spelling, secret string, args ...string) {
		t.Helper()
		if status, text := curl(t, ca, spelling, secret, args...); status != "403" || !strings.Contains(text, want) {
			t.Errorf("%v: %s %q, want 403 %q", args, status, text, want)
		}
	}
	f(messageMismatch, "aws:cloud", "WRONG", url+"/v1.1/health")
	f(messageMismatch, "cloud:cloud", "WRONG", url+"/v1.1/health")
	f("Signature expired: ", "aws:cloud", "SECRET", "-H", "x-cloud-date: "+old, url+"/v1.1/health")
	f(messageMissing, "aws:other", "SECRET", url+"/v1.1/health") // another date header
	f("the parameter start twice", "aws:cloud", "SECRET", url+"/v1.1/subjects?start=1&start=2")
	f(messageMismatch, "aws:cloud", "SECRET", url+"/v1.1/tags/100%25") // only the as-received path matches, and it has %25
}
