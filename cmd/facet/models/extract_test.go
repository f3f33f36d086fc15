package models

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"facet/cmd/facet/photos"
	"facet/engine/enginetest"
	"facet/engine/score"
	"facet/internal/must"
)

// photoDir is a folder with two photographs of one person, one of another, one of a cup, and no image.
func photoDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for who, list := range map[string]map[string][]byte{
		"Biden": {"a.jpg": enginetest.Photo(t, "face_recognition/biden.jpg")},
		"Obama": {
			"a.jpg": enginetest.Photo(t, enginetest.Obama[1]), "b.jpg": enginetest.Photo(t, enginetest.Obama[2]),
			"cup.png": enginetest.Photo(t, "scikit-image/coffee.png"), "none.jpg": []byte("none"),
		},
	} {
		must.Do(t, os.MkdirAll(filepath.Join(dir, who), 0o700))
		for name, data := range list {
			must.Do(t, os.WriteFile(filepath.Join(dir, who, name), data, 0o600))
		}
	}
	return dir
}

func extraction(t *testing.T, pack string) Extraction {
	t.Helper()
	x := Extraction{Images: photoDir(t), File: filepath.Join(t.TempDir(), "lab.npz"), Faces: photos.FacesMiddle, Out: new(bytes.Buffer)}
	x.Pack, x.ONNXRuntime = filepath.Join(packs(t), pack), enginetest.Library(t)
	return x
}

// array is an array of a file that Extract wrote.
type array struct {
	kind, shape string
	data        []byte
}

var npyHead = regexp.MustCompile(`(?s)^.NUMPY\x01\x00..\{'descr': '(.*)', 'fortran_order': False, 'shape': \((.*)\), \} *\n`)

func arraysOf(t *testing.T, file string) map[string]array {
	t.Helper()
	r, err := zip.OpenReader(file)
	must.Do(t, err)
	defer r.Close()
	arrays := make(map[string]array)
	for _, f := range r.File {
		in, err := f.Open()
		must.Do(t, err)
		data, err := io.ReadAll(in)
		must.Do(t, err)
		head := npyHead.FindSubmatchIndex(data)
		if head == nil {
			t.Fatalf("%s begins with %.80q", f.Name, data)
		}
		arrays[strings.TrimSuffix(f.Name, ".npy")] = array{string(data[head[2]:head[3]]), string(data[head[4]:head[5]]), data[head[1]:]}
	}
	return arrays
}

// texts returns the texts of an array.
func (a array) texts() (list []string) {
	var width int
	fmt.Sscanf(a.kind, "|S%d", &width)
	for from := 0; from < len(a.data); from += width {
		list = append(list, strings.TrimRight(string(a.data[from:][:width]), "\x00"))
	}
	return list
}

// row returns a row of a matrix of float32.
func (a array) row(i, cols int) []float32 {
	row := make([]float32, cols)
	for c := range row {
		row[c] = math.Float32frombits(binary.LittleEndian.Uint32(a.data[4*(i*cols+c):]))
	}
	return row
}

func TestExtractWritesWhatModelsMeasured(t *testing.T) {
	t.Parallel()
	x := extraction(t, "default")
	must.Do(t, x.Extract(t.Context()))
	got := arraysOf(t, x.File)
	pack, err := x.Read()
	must.Do(t, err)
	if fmt.Sprintf("%x", sha256.Sum256(got["manifest"].data)) != pack.ID {
		t.Error("the manifest is not the pack's")
	}
	person := got["person"].data
	files, outcomes := got["file"].texts(), got["outcome"].texts()
	var faces [][]float32
	for i, name := range files {
		who := binary.LittleEndian.Uint32(person[4*i:])
		row := got["template"].row(i, 192)
		wants := map[string]string{"cup.png": "no face", "none.jpg": "no image"}[name]
		if wants == "" {
			wants = "acquired"
			if who == 1 {
				faces = append(faces, row)
			}
		}
		if outcomes[i] != wants || (wants == "acquired") != (score.Dot(row, row) > .99) {
			t.Errorf("%s is %s, and its template has the square %v", name, outcomes[i], score.Dot(row, row))
		}
	}
	if len(faces) != 2 || score.Dot(faces[0], faces[1]) < .4 {
		t.Fatalf("the second person has %d faces, or they differ", len(faces))
	}
	checkSeen(t, got)
	info, err := os.Stat(x.File)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v; error %v", info.Mode(), err)
	}
	if text := x.Out.(*bytes.Buffer).String(); !strings.Contains(text, "biometric data") || !strings.Contains(text, "5 photographs of 2 persons: 3 with a face, 1 without one, 1 no image") {
		t.Errorf("it says %s", text)
	}
	if err := x.Extract(t.Context()); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("a second time: %v", err)
	}
}

// checkSeen compares the detections with those of a calibration.
func checkSeen(t *testing.T, got map[string]array) {
	t.Helper()
	kinds := got["seen_kind"].texts()
	count := make(map[string]int)
	for i, kind := range kinds {
		count[kind]++
		photo := int32(binary.LittleEndian.Uint32(got["seen_photo"].data[4*i:]))
		if kind == asPhotographed && score.Dot(got["seen_template"].row(i, 192), got["fit_template"].row(int(photo), 192)) < sameFace {
			t.Errorf("detection %d is not of photograph %d", i, photo)
		}
	}
	if count[asPhotographed] != 2 || count[kindTurned] == 0 || len(kinds) < 5 {
		t.Errorf("kinds of detections: %v", count)
	}
	n := fmt.Sprint(len(kinds))
	for name, shape := range map[string]string{
		"feature": "5, 14", "features": "14,", "seen_feature": n + ", 14", "seen_looks": n + ", 2", "seen_upright": n + ", 4",
		"quality": "5,", "defects": "5,", "chosen": "5,", "aside": "5,", "fit_outcome": "5,", "version": "", "persons": "2,",
	} {
		if got[name].shape != shape {
			t.Errorf("%s has the shape (%s), want (%s)", name, got[name].shape, shape)
		}
	}
}

// A pack with two embedders has the values of both, which its projection reduces to the templates of
// the service.
func TestExtractKeepsBothEmbedders(t *testing.T) {
	t.Parallel()
	x := extraction(t, "accurate")
	x.OnlyRates = true
	must.Do(t, x.Extract(t.Context()))
	got := arraysOf(t, x.File)
	if got["both"].shape != "5, 320" || got["template"].shape != "5, 160" || got["seen_kind"].data != nil {
		t.Fatalf("both (%s), templates (%s)", got["both"].shape, got["template"].shape)
	}
	e, err := x.Open()
	must.Do(t, err)
	defer e.Close()
	folder, err := photos.Read(t.Context(), x.Images)
	must.Do(t, err)
	of, err := photos.Extract(t.Context(), e, folder.Photos, photos.Choice{Middle: true}, nil)
	must.Do(t, err)
	for i, of := range of {
		if want := of.Face.Template; want != nil && score.Dot(got["template"].row(i, 160), want) < .999999 {
			t.Errorf("template %d differs from the service's", i)
		}
	}
}

// A run that breaks off leaves no file.
func TestFailedExtractLeavesNothing(t *testing.T) {
	t.Parallel()
	x := extraction(t, "default")
	err := x.save(func(w io.Writer) error {
		_, err := w.Write(make([]byte, 100))
		must.Do(t, err)
		return io.ErrShortWrite
	})
	left, readErr := os.ReadDir(filepath.Dir(x.File))
	if err == nil || readErr != nil || len(left) != 0 {
		t.Errorf("%v; %d files are left", err, len(left))
	}
	x.File = filepath.Join(x.File, "none", "lab.npz")
	if err := x.Extract(t.Context()); err == nil || !strings.Contains(err.Error(), "no folder") {
		t.Errorf("into a missing folder: %v", err)
	}
}
