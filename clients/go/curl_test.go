package client_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// curlBlock matches the block of the repository's README that shows curl: indented
// lines, from the line with BASE= on.
var curlBlock = regexp.MustCompile(`(?m)^    BASE=.*\n(?:(?:    .*)?\n)+`)

// apiKeyLine is the line of the block after which a person inserts an API key.
const apiKeyLine = `echo 'header = "x-api-key: …"' >> dev/curl.conf` + "\n"

// TestReadmeCurlLinesRun runs the lines with bash, with the cluster's address and
// the API key in place of the dots.
func TestReadmeCurlLinesRun(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(folder, "..", "..", "README.md"))
	must(t, err)
	block := strings.ReplaceAll("\n"+curlBlock.FindString(string(readme)), "\n    ", "\n")
	address, lines, ok1 := strings.Cut(block, "=https://127.0.0.1:…\n")
	before, after, ok2 := strings.Cut(lines, apiKeyLine)
	if !ok1 || !ok2 {
		t.Fatalf("the README has no such curl lines: %q", block)
	}
	address += "=" + readDev(t).BaseURLs[0] + "\n"
	before = strings.Replace(before, `"staff"`, `"`+t.Name()+`"`, 1)
	for name, shows := range map[string]string{"me.jpg": obama, "me-too.jpg": anotherObama, "group.jpg": threePeople} {
		must(t, os.Symlink(filepath.Join("assets", "photos", shows), name))
	}

	var gallery struct {
		APIKey string `json:"apiKey"`
	}
	made := bash(t, address+before)
	if err := json.Unmarshal([]byte(made), &gallery); err != nil || gallery.APIKey == "" {
		t.Fatalf("got %s, %v", made, err)
	}
	keep := strings.Replace(apiKeyLine, "…", gallery.APIKey, 1)
	answers := strings.Split(strings.TrimSpace(bash(t, address+keep+after)), "\n")
	want := []string{`{"id":`, `{"candidates":[{"id":`, `{"faces":[{"attributes":`, `{"subjects":[{"id":`}
	if len(answers) != len(want) {
		t.Fatalf("got %d answers, want %d: %q", len(answers), len(want), answers)
	}
	for i, a := range answers {
		if !strings.HasPrefix(a, want[i]) {
			t.Errorf("line %d: got %.200s, want %s", i, a, want[i])
		}
	}
}

// bash runs a script and returns its output.
func bash(t *testing.T, script string) string {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s%s\n%s", err, &out, &errs, script)
	}
	return out.String()
}
