package nodetest

import (
	"os"
	"path/filepath"
	"testing"

	"facet/shard/segment"
)

// HasOperationFiles reports whether a data directory has operations in files, for any shard.
func HasOperationFiles(t *testing.T, dir string) bool {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "group-*", "segments", "*.seg"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if segment.IsCompanion(name) {
			continue
		}
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		// The first record's clear part is an outcome (shard/segment/format.md).
		if len(b) > 26 && b[24] == 17 && b[25] == 1 {
			return true
		}
	}
	return false
}
