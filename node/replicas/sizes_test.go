package replicas

import (
	"os"
	"path/filepath"
	"testing"

	"facet/internal/must"
)

func TestSizesDistinguishFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, size := range map[string]int{
		"raft.db": 100, "snapshots/2-5-7/state.bin": 30, "snapshots/2-5-7/meta.json": 3, "segments/a": 500, "segments/b": 50,
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must.Do(t, os.WriteFile(path, make([]byte, size), 0o600))
	}
	got, err := filesOf(dir)
	if err != nil || got.Log != 100 || got.Snapshots != 33 || got.Segments != 550 || got.SnapshotAt.IsZero() {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := filesOf(filepath.Join(dir, "none")); err != nil || got != (Files{}) {
		t.Errorf("a folder that went away: %+v, %v", got, err)
	}
}
