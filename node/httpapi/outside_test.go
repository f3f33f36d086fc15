package httpapi

import (
	"encoding/base64"
	"encoding/pem"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// curl makes the signatures itself: its side runs no code of ours.
func TestCurlRegistersAndSearches(t *testing.T) {
	t.Parallel()
	var certificate []byte
	r := start(t, func(c *Config) {
		c.Now = time.Now
		certificate = c.TLS.Certificates[0].Certificate[0]
	})
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}), 0o600); err != nil {
		t.Fatal(err)
	}
	f := func(spelling, as, target, body, want string, args ...string) {
		t.Helper()
		all := append([]string{
			"--silent", "--show-error", "--cacert", ca, "--aws-sigv4", spelling + ":ap-southeast-2:execute-api",
			"--user", as + ":secret of " + as, "--write-out", " %{http_code}", "https://" + r.addr + target,
		}, args...)
		if body != "" {
			all = append(all, "--data-binary", "@-", "-H", "content-type: application/json")
		}
		command := exec.Command("curl", all...)
		command.Stdin = strings.NewReader(body)
		out, err := command.Output()
		if err != nil {
			if exit, ok := errors.AsType[*exec.ExitError](err); ok {
				err = errors.New(string(exit.Stderr))
			}
			t.Fatalf("curl %s: %v", target, err)
		}
		if !strings.HasPrefix(string(out), want[:len(want)-4]) || !strings.HasSuffix(string(out), want[len(want)-4:]) {
			t.Errorf("%s %s: got %s, want %s", spelling, target, out, want)
		}
	}
	key := "x-api-key: appxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
	alice := base64.StdEncoding.EncodeToString([]byte("img alice" + strings.Repeat(" ", 1<<20)))
	f("cloud:cloud", "admin", "/api/galleries", `{"name":"app","faceMinimumQualityScore":0.5,"size":2}`, `{"id":" 200`)
	// More than 1 MiB: curl asks with Expect: 100-continue before it sends it.
	f("aws:cloud", "biometric", "/v1.1/subjects", `{"face":"`+alice+`"}`, `{"id":" 201`, "-H", key)
	f("cloud:cloud", "biometric", "/v1.1/face/search", `{"probe":"`+alice+`","limit":1}`, `{"candidates":[{"id":" 200`, "-H", key)
	f("aws:amz", "biometric", "/v1.1/subjects?start=0&length=5&dir=desc", "", `{"subjects":[{"id":" 200`, "-H", key)
	f("aws:cloud", "biometric", "/v1.1/tags/a%2Fb%20c+d;%C3%A9", "", " 200", "-H", key, "--request", "POST")
	f("cloud:cloud", "biometric", "/v1.1/tags/a%2Fb%20c+d;%C3%A9", `{"newName":"100%/"}`, " 200", "-H", key, "--request", "PUT")
	f("cloud:cloud", "biometric", "/v1.1/tags", "", `["100%/"] 200`, "-H", key)
	f("aws:cloud", "biometric", "/v1.1/subjects", strings.Repeat("A", 20<<20+1), `{"message":"The body is too large."} 413`, "-H", key)
	f("aws:cloud", "stranger", "/v1.1/health", "", `{"message":"The request signature we calculated does not match the signature you provided."} 403`)
	f("aws:cloud", "biometric", "/v1.1/subjects", "", `{"message":"Forbidden"} 403`)
}

// The details of a fault go to the log with the request's id, and nowhere else.
// Nothing that a client sends is logged.
func TestLogsHaveTheRequestIDAndNoSecrets(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	a := r.send(signed{as: "biometric", method: "POST", target: "/v1.1/face/extract", body: `{"faces":"ZmF1bHQ="}`})
	requestID := a.header.Get("X-Request-Id")
	if a.status != 500 || strings.Contains(a.body, "disk on fire") || !strings.Contains(a.body, requestID) {
		t.Errorf("answer %d %s", a.status, a.body)
	}
	b := r.send(signed{as: "biometric", method: "POST", target: "/v1.1/face/extract", body: `{"faces":"cGFuaWM="}`})
	r.exchange(line("GET / HTTP/1.1", "Host: a", "x-api-key: private key", "Authorization private signature", ""), "GET")
	r.exchange(line("GET / HTTP/1.1", "Host: a", "x-api-key: private\x00key", ""), "GET")
	r.send(signed{as: "biometric", method: "GET", target: "/v1.1/health"})
	logs := r.logs.String()
	for _, want := range []string{"disk on fire", "req=" + requestID, "req=" + b.header.Get("X-Request-Id"), "asked for"} {
		if !strings.Contains(logs, want) {
			t.Errorf("no %q in the logs:\n%s", want, logs)
		}
	}
	for _, secret := range []string{"private", "ZmF1bHQ", "secret of", "level=INFO"} {
		if strings.Contains(logs, secret) {
			t.Errorf("%q in the logs:\n%s", secret, logs)
		}
	}
}
