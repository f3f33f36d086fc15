package enginetest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"facet/engine/models"
)

// PackOf writes a pack with these files of some roles, the rest those of the default
// pack, and a manifest after a change, and opens it.
func PackOf(t *testing.T, manifest []byte, files map[models.Role][]byte, change func(m map[string]any)) *models.Pack {
	t.Helper()
	m := make(map[string]any)
	if err := json.Unmarshal(manifest, &m); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name string, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range m["files"].([]any) {
		f := f.(map[string]any)
		role := models.Role(f["role"].(string))
		data, ok := files[role]
		if !ok {
			var err error
			if data, err = Pack(t).Load(role); err != nil {
				t.Fatal(err)
			}
		}
		sum := sha256.Sum256(data)
		f["size"], f["sha256"] = len(data), hex.EncodeToString(sum[:])
		write(f["name"].(string), data)
	}
	change(m)
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	write(models.ManifestName, data)
	p, err := models.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
