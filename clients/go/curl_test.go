package client_test

import (
	"bytes"
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

// TestReadmeCurlLinesRun runs the lines with bash. It changes only the gallery's name.
func TestReadmeCurlLinesRun(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(folder, "..", "..", "README.md"))
	must(t, err)
	block := strings.ReplaceAll("\n"+curlBlock.FindString(string(readme)), "\n    ", "\n")
	script := strings.Replace(block, `"guests"`, `"`+t.Name()+`"`, 1)
	if script == block {
		t.Fatalf("the README has no such curl lines: %q", block)
	}
	answers := strings.Split(strings.TrimSpace(bash(t, script)), "\n")
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
