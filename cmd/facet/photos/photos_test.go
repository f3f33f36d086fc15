package photos

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"facet/engine/accuracy"
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

func TestPairsSelectTheirPhotographs(t *testing.T) {
	t.Parallel()
	f, err := Read(t.Context(), tree(t, map[string][]byte{
		"A/A_0001.jpg": nil, "B/B_0001.jpg": nil, "B/B_0002.jpg": nil, "C/C_0001.jpg": nil, "C/C_0007.jpg": nil,
	}))
	must.Do(t, err)
	pair := func(a string, i int, b string, j int) accuracy.Pair {
		return accuracy.Pair{A: accuracy.Photo{Person: a, Number: i}, B: accuracy.Photo{Person: b, Number: j}}
	}
	places, err := f.Resolve([]accuracy.Pair{pair("B", 2, "C", 7), pair("C", 7, "C", 1)})
	if diff := cmp.Diff([][2]int{{2, 4}, {4, 3}}, places); diff != "" || err != nil {
		t.Fatalf("%v, −want +got\n%s", err, diff)
	}
	f.Keep(places)
	if diff := cmp.Diff([][2]int{{0, 2}, {2, 1}}, places); diff != "" {
		t.Errorf("places among those kept: −want +got\n%s", diff)
	}
	if diff := cmp.Diff([]string{"B", "C"}, f.Persons); diff != "" {
		t.Errorf("persons kept: −want +got\n%s", diff)
	}
	for i, want := range []string{"B_0002", "C_0001", "C_0007"} {
		p := f.Photos[i]
		if p.Name != want || f.Persons[p.Person] != want[:1] {
			t.Errorf("photograph %d is %s of %s, want %s", i, p.Name, f.Persons[p.Person], want)
		}
	}
	if _, err := f.Resolve([]accuracy.Pair{pair("B", 2, "B", 9)}); err == nil || !strings.Contains(err.Error(), `photograph 9 of "B"`) {
		t.Errorf("a pair of a missing photograph: %v", err)
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

func TestFailuresAreCountedByReason(t *testing.T) {
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
	if x.Faceless != 1 || x.Unreadable != 3 || x.Poor != 0 || x.Failed() != 4 {
		t.Errorf("%d without face, %d unreadable, %d poor, want 1, 3, 0", x.Faceless, x.Unreadable, x.Poor)
	}
	for i, want := range []bool{true, false, false, false, true, false} {
		if s := x.Samples[i]; s.Acquired != want || s.Acquired != (x.Templates[i] != nil) || s.Person != i {
			t.Errorf("%s: %+v, want acquired %v", f.Photos[i].Name, s, want)
		}
	}
	strict, err := Extract(t.Context(), e, f.Photos, Choice{Middle: true, QualityMin: 1}, nil)
	if err != nil || strict.Poor != 2 || strict.Failed() != 6 {
		t.Errorf("quality 1 asked: %d poor of %d failed, %v, want 2 of 6", strict.Poor, strict.Failed(), err)
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
	if err != nil || x.Failed() != 0 {
		t.Fatalf("no face found: %v", err)
	}
	middle, larger := e.Compare(x.Templates[0], x.Templates[1]), e.Compare(x.Templates[0], x.Templates[2])
	if middle < 9000 || larger >= 7000 {
		t.Errorf("scores are %d with the man in the middle and %d with the larger one", middle, larger)
	}
}

// By a rule of the service the least quality is that of the photograph which is enrolled.
func TestProbesNeedLessQuality(t *testing.T) {
	t.Parallel()
	photo := enginetest.Photo(t, "face_recognition/obama.jpg")
	f, err := Read(t.Context(), tree(t, map[string][]byte{"a/1.jpg": photo, "a/2.jpg": photo, "b/1.jpg": photo}))
	must.Do(t, err)
	e := enginetest.Shared(t)
	for c, want := range map[Choice][3]bool{
		{QualityMin: 1}:               {false, true, false},
		{QualityMin: 1, Middle: true}: {false, false, false},
	} {
		x, err := Extract(t.Context(), e, f.Photos, c, nil)
		must.Do(t, err)
		if got := [3]bool{x.Samples[0].Acquired, x.Samples[1].Acquired, x.Samples[2].Acquired}; got != want {
			t.Errorf("%+v: acquired %v, want %v", c, got, want)
		}
	}
}
