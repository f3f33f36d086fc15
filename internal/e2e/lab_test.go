//go:build long

package e2e

import (
	"encoding/json"
	"fmt"
	"image"
	colour "image/color" //nolint:misspell // the standard library spells it so
	"image/jpeg"
	"io"
	"math/bits"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/image/draw"

	"facet/engine"
	"facet/engine/enginetest"
	"facet/internal/must"
)

const (
	bases      = 14
	mixed      = 3
	twice      = 50 // persons have two photos
	portraitPx = 160
)

// faces returns sharp faces of different people on the sample photos, cut out.
func faces(t *testing.T) (list []*image.RGBA) {
	t.Helper()
	e := enginetest.Shared(t)
	var known []engine.Template
	names := []string{enginetest.Obama[0], "face_recognition/biden.jpg", "scikit-image/astronaut.png"}
	for i := range 6 {
		names = append(names, fmt.Sprintf("face-api/sample%d.jpg", i+1))
	}
	for _, name := range names {
		data := enginetest.Photo(t, name)
		found, err := e.ExtractLarge(t.Context(), data, 0)
		must.Do(t, err)
		photo := enginetest.RGBA(t, data)
		for _, f := range found {
			like := func(of engine.Template) bool { return e.Compare(of, f.Template) > 5000 }
			if len(list) == bases || f.Attributes.Quality < .6 || slices.ContainsFunc(known, like) {
				continue
			}
			known = append(known, f.Template)
			r := f.Attributes.Face
			side, x, y := int(r.Right-r.Left), int(r.Left+r.Right)/2, int(r.Top+r.Bottom)/2
			face := image.NewRGBA(image.Rect(0, 0, portraitPx, portraitPx))
			draw.CatmullRom.Scale(face, face.Rect, photo, image.Rect(x-side, y-side, x+side, y+side), draw.Src, nil)
			list = append(list, face)
		}
	}
	return list
}

// drawNobodies writes photos of persons that do not exist, mixtures of up to mixed faces, and returns their number.
// Some have a second, darker photo.
func drawNobodies(t *testing.T, dir string) (n int) {
	t.Helper()
	list := faces(t)
	for set := range uint(1) << len(list) {
		if k := bits.OnesCount(set); k == 0 || k > mixed {
			continue
		}
		face, part := image.NewRGBA(list[0].Rect), 0
		for i, of := range list {
			if set>>i&1 == 1 {
				part++
				share := image.NewUniform(colour.Alpha{A: uint8(255 / part)})
				draw.DrawMask(face, face.Rect, of, image.Point{}, share, image.Point{}, draw.Over)
			}
		}
		person := filepath.Join(dir, fmt.Sprintf("p%03d", n))
		must.Do(t, os.MkdirAll(person, 0o700))
		saveJPEG(t, filepath.Join(person, "a.jpg"), face)
		if n < twice {
			draw.DrawMask(face, face.Rect, image.Black, image.Point{}, image.NewUniform(colour.Alpha{A: 100}), image.Point{}, draw.Over)
			saveJPEG(t, filepath.Join(person, "b.jpg"), face)
		}
		n++
	}
	return n
}

func saveJPEG(t *testing.T, file string, im image.Image) {
	t.Helper()
	f, err := os.Create(file)
	must.Do(t, err)
	must.Do(t, jpeg.Encode(f, im, nil))
	must.Do(t, f.Close())
}

// The steps of docs/formats/pack.md: a pack with a calibration that is wrong is fitted to photographs with the wheel of
// facet-lab, and a node's engine takes what was written.
func TestPackIsFittedByTheLab(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	python := filepath.Join(root, "assets", "venv", "bin", "python")
	wheels := exec.Command("go", "run", "./scripts/clients", "-npm=", "-to", dir)
	wheels.Dir = root
	if out, err := wheels.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	wheel, err := filepath.Glob(filepath.Join(dir, "facet_lab-*.whl"))
	if err != nil || len(wheel) != 1 {
		t.Fatalf("wheels: %v, %v", wheel, err)
	}
	lab := func(args ...string) string {
		t.Helper()
		run := "import sys; sys.path.insert(0, sys.argv.pop(1)); from facet_lab._cli import main; sys.exit(main())"
		out, err := exec.Command(python, append([]string{"-c", run, wheel[0]}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("facet-lab %q: %v: %s", args, err, out)
		}
		return string(out)
	}
	program := func(args ...string) string {
		t.Helper()
		out, err := facet(args...)
		if err != nil {
			t.Fatalf("facet %q: %v: %s", args, err, out)
		}
		return out
	}
	images, pack := filepath.Join(dir, "photos"), filepath.Join(dir, "mine")
	persons := drawNobodies(t, images)
	must.Do(t, os.CopyFS(pack, os.DirFS(filepath.Join(root, "assets", "packs", "sface"))))
	manifest := filepath.Join(pack, "manifest.json")
	before := calibrationOf(t, manifest)

	file, after := filepath.Join(dir, "photos.npz"), filepath.Join(dir, "after.npz")
	out := program("models", "extract", pack, "--images", images, "--out", file)
	if !strings.Contains(out, fmt.Sprintf("%d photographs of %d persons", persons+twice, persons)) || !strings.Contains(out, "biometric data") {
		t.Errorf("extract says %s", out)
	}
	if out := lab("calibrate", file, "--dataset", "mixed faces", "--write", manifest); !strings.Contains(out, "the pack's identity has changed") {
		t.Errorf("calibrate says %s", out)
	}
	if got := calibrationOf(t, manifest); got == before || !strings.Contains(got, "mixed faces: ") {
		t.Errorf("the calibration is %s", got)
	}
	if out := program("models", "verify", pack); !strings.Contains(out, "1 face(s)") {
		t.Errorf("verify says %s", out)
	}
	program("models", "extract", pack, "--images", images, "--out", after, "--only-rates")
	if out := lab("accuracy", after); !strings.Contains(out, "pack sface") || !strings.Contains(out, "mated") {
		t.Errorf("accuracy says %s", out)
	}
}

// calibrationOf returns the text about a manifest's calibration.
func calibrationOf(t *testing.T, file string) string {
	t.Helper()
	f, err := os.Open(file)
	must.Do(t, err)
	defer f.Close()
	text, err := io.ReadAll(f)
	must.Do(t, err)
	var m struct{ Calibration struct{ Data string } }
	must.Do(t, json.Unmarshal(text, &m))
	return m.Calibration.Data
}
