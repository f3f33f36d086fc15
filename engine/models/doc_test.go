package models

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"facet/internal/must"
)

func TestPackPageNamesSchemaAndModels(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "formats", "pack.md"))
	must.Do(t, err)
	if !strings.Contains(string(page), "](../../engine/models/manifest.schema.json)") {
		t.Error("docs/formats/pack.md does not link to manifest.schema.json")
	}
	for _, name := range Names() {
		if want := parsed(t, builtin(t, name)).ModelID().String(); !strings.Contains(string(page), "`"+want+"`") {
			t.Errorf("docs/formats/pack.md does not name %s, the model of %s", want, name)
		}
	}
}
