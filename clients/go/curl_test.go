package client_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"facet.internal/client"
)

// curlBlock matches the block of the clients' README that shows curl: indented lines, from
// the line with BASE= on.
var curlBlock = regexp.MustCompile(`(?m)^    BASE=.*\n(?:(?:    .*)?\n)+`)

// curlLines returns the lines of a README that show curl. It changes only the gallery's name.
func curlLines(t *testing.T, readme string) string {
	t.Helper()
	text, err := os.ReadFile(readme)
	must(t, err)
	block := strings.ReplaceAll("\n"+curlBlock.FindString(string(text)), "\n    ", "\n")
	script := strings.Replace(block, `"curl staff"`, `"`+t.Name()+`"`, 1)
	if script == block {
		t.Fatalf("%s has no such curl lines: %q", readme, block)
	}
	return script
}

// The story that the READMEs of the clients tell, too. Deletions answer without a body.
func TestClientsCurlLinesRun(t *testing.T) {
	script := curlLines(t, filepath.Join(folder, "..", "README.md"))
	curlAnswers(t, script, []string{`{"candidates":[{"id":`, `{"id":`, `{"subjects":[{"id":`, `{"faces":[{"attributes":`})
	c, err := client.FromDev("dev/dev.json")
	must(t, err)
	defer c.Close()
	galleries, err := c.Galleries(t.Context())
	must(t, err)
	if slices.ContainsFunc(galleries, func(g client.Gallery) bool { return g.Name == t.Name() }) {
		t.Error("the last line deletes no gallery")
	}
}

// curlAnswers runs a script with bash and compares the beginnings of the lines that it prints.
func curlAnswers(t *testing.T, script string, want []string) {
	t.Helper()
	answers := strings.Split(strings.TrimSpace(bash(t, script)), "\n")
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
