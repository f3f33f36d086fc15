package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// curl signs and sends; a node and facet explain-signature judge the same bytes alike.
func TestExplainSignatureAgreesWithNode(t *testing.T) {
	t.Parallel()
	c := shared(t)
	dir := t.TempDir()
	conf := read(t, filepath.Join(c.dir, "curl.conf"))
	body := put(t, dir, "body.json", []byte(`{"name":""}`))
	f := func(status string, code int, want string, change func(conf string) string, args ...string) {
		t.Helper()
		config := put(t, dir, "curl.conf", []byte(change(string(conf))))
		cmd := exec.Command("curl", append([]string{"-v", "-K", config, "--data-binary", "@" + body, c.info.BaseURLs[0] + "/api/galleries?b=1&a=2"}, args...)...)
		said, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(said), "< HTTP/1.1 "+status) {
			t.Fatalf("curl: %v, want %s: %s", err, status, said)
		}
		request := put(t, dir, "request.txt", said)
		out, err := facet("explain-signature", request, "--dir", c.dir, "--body-file", body)
		if (err == nil) != (code == 0) || !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			t.Errorf("%v, want %q:\n%s", err, want, out)
		}
		out, _ = facet("explain-signature", request, "--dir", c.dir, "--body-file", body, "-o", "json")
		var e struct{ Message string }
		err = json.Unmarshal([]byte(out), &e)
		told, _, _ := strings.Cut(e.Message, " is now earlier than ") // the rest is another second
		if err != nil || !strings.Contains(string(said), told) {
			t.Errorf("%v: the node did not say %q:\n%s", err, e.Message, said)
		}
		if strings.Contains(out, c.info.SecretKey) {
			t.Error("the secret key is shown")
		}
	}
	same := func(s string) string { return s }
	f("400", 0, "accepted: the signature is right", same)
	f("403", 1, "the request's date is", same, "-H", "x-cloud-date: 20260101T000000Z")
	f("403", 1, "other region", func(s string) string { return strings.Replace(s, c.info.Region, "us-east-1", 1) })
	f("403", 1, "the secret key was used with a blank at its end", func(s string) string { return strings.Replace(s, c.info.SecretKey, c.info.SecretKey+" ", 1) })
	f("403", 1, "or made with another secret key", func(s string) string { return strings.Replace(s, c.info.SecretKey, "another", 1) })

	if out, err := facet("explain-signature", "--method", "GET", "--url", "nonsense"); err == nil || !strings.Contains(out, "https://HOST/PATH") {
		t.Errorf("%v: %s", err, out)
	}
	cmd := exec.Command(program(), "explain-signature", "--method", "GET", "--url", "https://h/")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "FACET_SECRET_KEY=s", "FACET_PROFILE=")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "send the signature in an Authorization header") {
		t.Errorf("without a profile: %v: %s", err, out)
	}
}
