package bucket

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"facet/internal/must"
)

func TestOnlyMakeFolderMakesFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "missing")
	if _, err := OpenFolder(t.Context(), "file://"+dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("OpenFolder: %v, want that the folder is missing", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("OpenFolder has made the folder: %v", err)
	}
	for _, open := range []Opener{MakeFolder, OpenFolder} {
		f, err := open(t.Context(), "file://"+dir)
		must.Do(t, err)
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestListSurvivesRenamedFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 50 {
		must.Do(t, os.MkdirAll(filepath.Join(dir, fmt.Sprint("a", i)), 0o700))
		must.Do(t, os.WriteFile(filepath.Join(dir, fmt.Sprint("a", i), "manifest"), nil, 0o600))
	}
	f, err := OpenFolder(t.Context(), "file://"+dir)
	must.Do(t, err)
	defer f.Close()
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ; i++ {
			select {
			case <-end:
				return
			default:
				temporary := filepath.Join(dir, "a25", fmt.Sprint("part.", i, ".tmp"))
				_ = os.WriteFile(temporary, nil, 0o600)
				_ = os.Rename(temporary, filepath.Join(dir, "a25", "part"))
				time.Sleep(time.Millisecond)
			}
		}
	}()
	for range 200 {
		names, err := f.Folders(t.Context())
		if err != nil || len(names) != 50 || !slices.Contains(names, "a25") {
			t.Errorf("got %d folders, %v", len(names), err)
			break
		}
	}
	close(end)
	<-ended
}
