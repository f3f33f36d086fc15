package client_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The README must show the code that Example runs.
func TestReadmeShowsTheExample(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	_, body, _ := strings.Cut(read("example_test.go"), "func Example() {\n")
	body, _, _ = strings.Cut(body, "\t// Output:")
	body = strings.ReplaceAll("\n"+body, "\n\t", "\n")
	if len(body) < 500 || !strings.Contains(read("README.md"), "```go"+body+"```") {
		t.Errorf("the README does not show Example:\n%s", body)
	}
}
