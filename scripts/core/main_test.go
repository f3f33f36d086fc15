package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each file that the page names exists, and has lines.
func TestPageNamesFiles(t *testing.T) {
	t.Chdir("../..")
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	counted, err := measured(string(raw))
	if err != nil || strings.Contains(counted, "| 0 |") || len(row.FindAllString(counted, -1)) < 20 {
		t.Errorf("%v:\n%s", err, counted)
	}
}

func TestFaultsAreChangesOfSyntax(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "a.go")
	src := "package a\n\nfunc f(n int) (int, error) {\n\tif n < 1 && n != -1 {\n\t\tclose(c)\n\t}\n\treturn n + 1, err\n}\n"
	if err := os.WriteFile(file, []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := faultsOf(file)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range list {
		line := strings.Split(src[:f.from]+f.with+src[f.to:], "\n")[f.line-1]
		got = append(got, strings.TrimSpace(line))
	}
	want := []string{
		"if !(n < 1 && n != -1) {", "if n < 1 || n != -1 {", "if n <= 1 && n != -1 {", "if n < 1 && n == -1 {", "{}", "return n + 1, nil", "return n - 1, err",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}
