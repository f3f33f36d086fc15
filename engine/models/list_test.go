package models

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"facet/internal/must"
)

func TestListReportsUnusablePacks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"b", "a"} {
		from, _ := pack(t)
		must.Do(t, os.Rename(from, filepath.Join(dir, name)))
	}
	for _, name := range []string{"broken", "empty"} {
		must.Do(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	write(t, filepath.Join(dir, "broken"), ManifestName, []byte("{}"))
	write(t, dir, "a file", nil)
	// What a listing does not look at is no reason to leave a pack out.
	write(t, filepath.Join(dir, "a"), "fr_detect.onnx", []byte("x"))

	got, err := List(dir)
	must.Do(t, err)
	var names []string
	for _, l := range got {
		names = append(names, l.Name)
		if broken := l.Name == "broken"; errors.Is(l.Err, ErrManifest) != broken || (l.Pack == nil) != broken {
			t.Errorf("%s: pack %v, error %v", l.Name, l.Pack, l.Err)
		}
	}
	if diff := cmp.Diff([]string{"a", "b", "broken"}, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if _, err := List(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("of no folder: %v", err)
	}
}

func TestVerifyNamesChangedFiles(t *testing.T) {
	t.Parallel()
	dir, _ := pack(t)
	p, err := Read(dir)
	must.Do(t, err)
	files, err := p.Verify()
	if err != nil || len(files) != len(p.Manifest.Files) {
		t.Fatalf("an intact pack: %d files, error %v", len(files), err)
	}
	write(t, dir, "fr_detect.onnx", []byte("x"))
	must.Do(t, os.Remove(p.Path(RoleEmbedder)))
	files, err = p.Verify()
	if !errors.Is(err, ErrPack) {
		t.Errorf("error is %v, want ErrPack", err)
	}
	for _, f := range files {
		intact := f.File.Role == RoleLandmarks
		if errors.Is(f.Err, ErrPack) == intact {
			t.Errorf("%s: %v", f.File.Name, f.Err)
		}
	}
}
