package photos

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"facet/engine/enginetest"
	"facet/internal/must"
)

// tree creates a folder of files with contents.
func tree(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		must.Do(t, os.MkdirAll(filepath.Dir(file), 0o700))
		must.Do(t, os.WriteFile(file, data, 0o600))
	}
	return dir
}

func TestFolderIsReadByPersonAndName(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string][]byte{
		"Bo/Bo_0002.png": nil, "Bo/Bo_0001.JPG": nil, "Ann/Ann_0001.jpeg": nil, "Nobody/notes.txt": nil,
		"README.md": nil, ".cache/x.jpg": nil, "Bo/.hidden.jpg": nil, "Bo/deeper/Bo_0003.jpg": nil,
	})
	f, err := Read(t.Context(), dir)
	must.Do(t, err)
	if diff := cmp.Diff([]string{"Ann", "Bo"}, f.Persons); diff != "" {
		t.Errorf("persons: −want +got\n%s", diff)
	}
	want := []Photo{
		{0, filepath.Join(dir, "Ann", "Ann_0001.jpeg"), "Ann_0001"},
		{1, filepath.Join(dir, "Bo", "Bo_0001.JPG"), "Bo_0001"},
		{1, filepath.Join(dir, "Bo", "Bo_0002.png"), "Bo_0002"},
	}
	if diff := cmp.Diff(want, f.Photos); diff != "" {
		t.Errorf("photographs: −want +got\n%s", diff)
	}
}

func TestFolderWithoutPhotographsIsRefused(t *testing.T) {
	t.Parallel()
	for dir, want := range map[string]string{
		tree(t, map[string][]byte{"a.jpg": nil}): "no photograph",
		filepath.Join(t.TempDir(), "missing"):    "there is no folder",
	} {
		if _, err := Read(t.Context(), dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q", err, want)
		}
	}
}

func TestFailuresHaveReasons(t *testing.T) {
	t.Parallel()
	var huge strings.Builder
	huge.WriteString("\x89PNG\r\n\x1a\n")
	dir := tree(t, map[string][]byte{
		"Biden/b.jpg":   enginetest.Photo(t, "face_recognition/biden.jpg"),
		"Coffee/c.png":  enginetest.Photo(t, "scikit-image/coffee.png"),
		"Damaged/d.jpg": []byte("\xff\xd8\xffnothing"),
		"Empty/e.jpg":   nil,
		"Group/g.jpg":   enginetest.Behind(t),
		"Large/l.png":   append([]byte(huge.String()), make([]byte, photoBytesMax)...),
	})
	f, err := Read(t.Context(), dir)
	must.Do(t, err)
	e := enginetest.Shared(t)
	x, err := Extract(t.Context(), e, f.Photos, Choice{Middle: true}, nil)
	must.Do(t, err)
	for i, want := range []Outcome{Acquired, Faceless, Unreadable, Unreadable, Acquired, Unreadable} {
		if got := x[i]; got.Outcome != want || (want == Acquired) != (got.Face.Template != nil) {
			t.Errorf("%s: %s, want %s", f.Photos[i].Name, got.Outcome, want)
		}
	}
}

func TestFaceNearestToTheMiddleIsTaken(t *testing.T) {
	t.Parallel()
	f, err := Read(t.Context(), tree(t, map[string][]byte{
		"a/1.jpg": enginetest.Aside(t), "a/2.jpg": enginetest.Photo(t, enginetest.Others[0]), "a/3.jpg": enginetest.Photo(t, enginetest.Obama[0]),
	}))
	must.Do(t, err)
	e := enginetest.Shared(t)
	x, err := Extract(t.Context(), e, f.Photos, Choice{Middle: true}, nil)
	must.Do(t, err)
	middle, larger := e.Compare(x[0].Face.Template, x[1].Face.Template), e.Compare(x[0].Face.Template, x[2].Face.Template)
	if middle < 9000 || larger >= 7000 {
		t.Errorf("scores are %d with the man in the middle and %d with the larger one", middle, larger)
	}
}
