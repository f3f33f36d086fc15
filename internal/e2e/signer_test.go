package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"facet/internal/must"
)

// curl signs the requests of TestExplainSignatureAgreesWithNode.
func TestBotocoreSignaturesAreAccepted(t *testing.T) {
	t.Parallel()
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
	headers := map[string]string{"x-api-key": k.APIKey, "content-type": "application/json"}
	register, err := json.Marshal(map[string]string{"face": encoded(t, obama)})
	must.Do(t, err)
	calls := []call{
		{"GET", k.info.BaseURLs[0] + "/v1.1/health", map[string]string{}, ""},
		{"POST", k.info.BaseURLs[1] + "/v1.1/subjects", headers, string(register)},
		{"GET", k.info.BaseURLs[2] + "/v1.1/subjects?start=0&length=5&dir=desc", headers, ""},
		{"DELETE", k.info.BaseURLs[2] + "/v1.1/subjects/no%20such%2Fsubject", headers, ""},
	}
	want := []string{`200 {"status":"OK"}`, `201 {"id":`, `200 {"subjects":[{`, "404 {"}
	var in, out, errs bytes.Buffer
	for _, c := range calls {
		must.Do(t, json.NewEncoder(&in).Encode(c))
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
		if !strings.HasPrefix(line, want[i]) {
			t.Errorf("%s %s: got %.300s, want %s", calls[i].Method, calls[i].URL, line, want[i])
		}
	}
}
