package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// curl sends one request and returns "STATUS BODY".
func (k *client) curl(t *testing.T, scheme, url string, args ...string) string {
	t.Helper()
	all := append([]string{
		"-sS", "--cacert", k.info.CAFile, "--aws-sigv4", scheme + ":ap-southeast-2:execute-api",
		"--user", k.info.AccessKey + ":" + k.info.SecretKey, "-H", "x-api-key: " + k.apiKey,
		"-w", "\n%{http_code}",
	}, args...)
	var out, errs bytes.Buffer
	cmd := exec.Command("curl", append(all, url)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("curl: %v: %s (these tests need curl 7.82 or newer)", err, &errs)
	}
	i := bytes.LastIndexByte(out.Bytes(), '\n')
	return out.String()[i+1:] + " " + out.String()[:i]
}

// bodyFile writes a request body whose field has a photo.
func bodyFile(t *testing.T, field, photo string) string {
	t.Helper()
	b, err := json.Marshal(map[string]string{field: encoded(t, photo)})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "body.json")
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func wantStart(t *testing.T, what, got, want string) {
	t.Helper()
	if !strings.HasPrefix(got, want) {
		t.Errorf("%s: got %.300s, want %s", what, got, want)
	}
}

func TestCurlSignaturesAreAccepted(t *testing.T) {
	k := shared(t).client(t, 10)
	base := k.info.BaseURLs
	for _, scheme := range []string{"aws:cloud", "cloud:cloud"} {
		wantStart(t, scheme+" health", k.curl(t, scheme, base[0]+"/v1.1/health"), `200 {"status":"OK"}`)
		wantStart(t, scheme+" register", k.curl(t, scheme, base[1]+"/v1.1/subjects", "--json", "@"+bodyFile(t, "face", obama)), "201 {")
		wantStart(t, scheme+" search", k.curl(t, scheme, base[2]+"/v1.1/face/search", "--json", "@"+bodyFile(t, "probe", anotherObama)), `200 {"candidates":[{`)
		wantStart(t, scheme+" list", k.curl(t, scheme, base[0]+"/v1.1/subjects?start=0&length=5&dir=desc"), `200 {"subjects":[{`)
		wantStart(t, scheme+" galleries", k.curl(t, scheme, base[1]+"/api/galleries"), `200 {"galleries":[{`)
	}
	if got := len(k.active(t, 0)); got != 2 {
		t.Errorf("%d subjects, want 2", got)
	}
}

func TestCurlConfigurationSignsRequests(t *testing.T) {
	c := shared(t)
	out, err := exec.Command("curl", "-K", filepath.Join(c.dir, "curl.conf"), c.info.BaseURLs[1]+"/v1.1/health").CombinedOutput()
	if err != nil || string(out) != "{\"status\":\"OK\"}\n" {
		t.Errorf("got %v, %s", err, out)
	}
}

func TestWrongSecretIsRefused(t *testing.T) {
	k := shared(t).client(t, 10)
	k.info.SecretKey = strings.Repeat("x", len(k.info.SecretKey))
	for _, scheme := range []string{"aws:cloud", "cloud:cloud"} {
		got := k.curl(t, scheme, k.info.BaseURLs[0]+"/v1.1/health")
		wantStart(t, scheme, got, `403 {"message":"The request signature we calculated does not match the signature you provided."}`)
	}
}

func TestBotocoreSignaturesAreAccepted(t *testing.T) {
	k := shared(t).client(t, 10)
	python := filepath.Join(root, "assets", "venv", "bin", "python")
	if _, err := os.Stat(python); err != nil {
		t.Fatalf("botocore is missing: run \"make setup\" (%v)", err)
	}
	type call struct {
		Method  string            `json:"method"`
		URL     string            `json:"url"`
		Headers map[string]string `json:"headers"`
		Body    string            `json:"body"`
	}
	headers := map[string]string{"x-api-key": k.apiKey, "content-type": "application/json"}
	register, err := json.Marshal(map[string]string{"face": encoded(t, obama)})
	if err != nil {
		t.Fatal(err)
	}
	calls := []call{
		{"GET", k.info.BaseURLs[0] + "/v1.1/health", map[string]string{}, ""},
		{"POST", k.info.BaseURLs[1] + "/v1.1/subjects", headers, string(register)},
		{"GET", k.info.BaseURLs[2] + "/v1.1/subjects?start=0&length=5&dir=desc", headers, ""},
		{"DELETE", k.info.BaseURLs[2] + "/v1.1/subjects/no%20such%2Fsubject", headers, ""},
	}
	want := []string{`200 {"status":"OK"}`, `201 {"id":`, `200 {"subjects":[{`, "404 {"}
	var in, out, errs bytes.Buffer
	for _, c := range calls {
		if err := json.NewEncoder(&in).Encode(c); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(python, filepath.Join("testdata", "botocore_client.py"),
		k.info.CAFile, k.info.AccessKey, k.info.SecretKey, k.info.Region, k.info.Service)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = &in, &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("botocore: %v: %s", err, &errs)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != len(want) {
		t.Fatalf("got %d answers: %s", len(lines), &out)
	}
	for i, line := range lines {
		wantStart(t, calls[i].Method+" "+calls[i].URL, line, want[i])
	}
}
