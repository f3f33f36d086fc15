package models

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "put the schema into docs/formats/pack.md")

func TestDocumentedSchemaIsCurrent(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "docs", "formats", "pack.md")
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if head, _, ok := strings.Cut(string(page), "```json\n"); *rewrite && ok {
		page = []byte(head + "```json\n" + string(Schema()) + "```\n")
		if err := os.WriteFile(path, page, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want := "```json\n" + string(Schema()) + "```\n"; !bytes.HasSuffix(page, []byte(want)) {
		t.Error("docs/formats/pack.md does not end with manifest.schema.json")
	}
	for _, name := range []string{"default", "dlib"} {
		if want := parsed(t, builtin(t, name)).ModelID().String(); !strings.Contains(string(page), "`"+want+"`") {
			t.Errorf("docs/formats/pack.md does not name %s, the model of %s", want, name)
		}
	}
}
