package datadir

import (
	"os"
	"path/filepath"
	"testing"

	"facet/internal/must"
)

func TestPackIsKept(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "n1")
	f := func(want string, wantUsed bool) {
		t.Helper()
		if got, used, err := Pack(dir); err != nil || got != want || used != wantUsed {
			t.Errorf("%q, %v, %v, want %q, %v", got, used, err, want, wantUsed)
		}
	}
	f("", false)
	if _, err := Identify(dir); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"lost+found", "group-0"} {
		f("", false)
		must.Do(t, os.Mkdir(filepath.Join(dir, folder), 0o700))
	}
	f("", true)
	for _, identity := range []string{"abc", "def", "def"} {
		must.Do(t, NotePack(dir, identity))
		f(identity, true)
	}
}
