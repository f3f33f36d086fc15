package datadir

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"facet/internal/must"
	"facet/raftfsm/metafsm"
)

func TestOldDirectoriesAreRefused(t *testing.T) {
	t.Parallel()
	const known = metafsm.Level
	f := func(level uint32, group bool, want error, words string) {
		t.Helper()
		dir := t.TempDir()
		if _, err := Open(dir); err != nil {
			t.Fatal(err)
		}
		if level > 0 {
			must.Do(t, os.WriteFile(filepath.Join(dir, levelFile), strconv.AppendUint(nil, uint64(level), 10), 0o600))
		}
		if group {
			must.Do(t, os.Mkdir(filepath.Join(dir, groupFolders+"0"), 0o700))
		}
		err := CheckLevel(dir, known)
		if !errors.Is(err, want) || err != nil && !strings.Contains(err.Error(), words) {
			t.Errorf("level %d, a group %v: %v, want %v with %q", level, group, err, want, words)
		}
	}
	f(0, false, nil, "")
	f(0, true, metafsm.ErrOldLevel, "level 1: facet 0.3.1 or before wrote it, and facet 0.3.1 reads it")
	f(3, true, metafsm.ErrOldLevel, "level 3: facet 0.3.1 or before wrote it, and facet 0.3.1 reads it")
	f(3, false, metafsm.ErrOldLevel, "level 3")
	f(4, true, metafsm.ErrOldLevel, "level 4: a development version before facet 0.4.0 wrote it")
	f(metafsm.LevelFirst, true, nil, "")
	f(known, true, nil, "")
	f(known+1, true, metafsm.ErrLevel, "run a version that is at least as new")
}
