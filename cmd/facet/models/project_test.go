package models

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"facet/engine/models"
	"facet/internal/must"
)

// stretched returns vectors whose last values are a hundredth of the others, and whose projection has
// rows values.
func stretched(persons, dim, long, rows int) *folded {
	x := vectors(persons, dim)
	for i, t := range x.Templates {
		for j := range t {
			if j >= long {
				t[j] /= 100
			}
		}
		x.Templates[i] = unit(t)
	}
	return newFolds(x, persons, &models.Projection{Rows: rows, Cols: dim})
}

func TestProjectionKeepsLongestAxes(t *testing.T) {
	t.Parallel()
	const dim, long = 40, 24
	f := stretched(300, dim, long, long)
	values, kept, err := f.fit(none, none)
	must.Do(t, err)
	if kept < .999 {
		t.Errorf("the projection keeps %v of the squared norm", kept)
	}
	for r := range long {
		row := values[r*dim:][:dim]
		var square float64
		for c, v := range row {
			square += float64(v) * float64(v)
			if c >= long && math.Abs(float64(v)) > .02 {
				t.Errorf("row %d has %v of value %d, which is small", r, v, c)
			}
		}
		if math.Abs(square-1) > 1e-5 {
			t.Errorf("row %d has the square %v", r, square)
		}
	}
	other, _, err := f.fit(0, 3)
	if err != nil || bytes.Equal(f.size.Encode(values), f.size.Encode(other)) {
		t.Errorf("without two folds the fit is the same; error %v", err)
	}
	if _, _, err := stretched(300, dim, long, 41).fit(none, none); err == nil {
		t.Error("more rows than directions were fitted")
	}
}

// The test of a fit never compares a person that was fitted.
func TestProjectionIsTestedOnOtherPersons(t *testing.T) {
	t.Parallel()
	f := stretched(300, 40, 24, 24)
	fit, err := f.fitted(1, 4)
	must.Do(t, err)
	fold := make(map[int]int)
	for i, s := range f.Samples {
		if of, ok := fold[s.Person]; ok && of != f.of[i] {
			t.Errorf("person %d is in two folds", s.Person)
		}
		fold[s.Person] = f.of[i]
		if left := f.of[i] == 1 || f.of[i] == 4; left != (fit.templates[i] != nil) {
			t.Errorf("photograph %d of fold %d has a template: %v", i, f.of[i], !left)
		}
	}
	tested, err := f.test(t.Context())
	must.Do(t, err)
	if want := int64(600*598) / 2; tested.all.NonMatedPairs != want || tested.all.MatedPairs != 300 {
		t.Errorf("%d non-mated and %d mated pairs, want %d and 300", tested.all.NonMatedPairs, tested.all.MatedPairs, want)
	}
	if want := int64(5 * 120 * 118 / 2); tested.withinPairs != want {
		t.Errorf("%d non-mated pairs within folds, want %d", tested.withinPairs, want)
	}
	if within := tested.within.ThresholdFor(1e-3); tested.within.FNMR[within] < .98 {
		t.Errorf("within folds the FNMR is %v", tested.within.FNMR[within])
	}
	for _, at := range tested.all.Targets { // random directions: the pairs of one person are like any others
		if at.FMR.Value > at.Target || at.FNMR.Value < .98 {
			t.Errorf("at an FMR of %v: %+v", at.Target, at)
		}
	}
}

// twoEmbedders writes a manifest of a pack with two embedders, whose templates are short, and returns
// its name.
func twoEmbedders(t *testing.T) string {
	t.Helper()
	manifest, ok := models.Builtin(models.AccuratePack)
	if !ok {
		t.Fatal("there is no pack accurate")
	}
	type object = map[string]any
	var m object
	must.Do(t, json.Unmarshal(manifest, &m))
	joined := m["joined"].(object)
	m["embedder"].(object)["dim"], joined["embedder"].(object)["dim"] = 32, 32
	size := models.Projection{Rows: 24, Cols: 64}
	joined["projection"] = size
	for _, file := range m["files"].([]any) {
		if file := file.(object); file["role"] == string(models.RoleProjection) {
			file["size"] = len(size.Encode(make([]float32, size.Rows*size.Cols)))
		}
	}
	joined["spectrum"] = slices.Repeat([]float64{1. / 24}, 24)
	manifest, err := json.MarshalIndent(m, "", "  ")
	must.Do(t, err)
	name := filepath.Join(t.TempDir(), "mine.json")
	must.Do(t, os.WriteFile(name, manifest, 0o600))
	return name
}

func TestProjectWritesFileAndHash(t *testing.T) {
	t.Parallel()
	name := twoEmbedders(t)
	before, err := models.Parse(readAll(t, name))
	must.Do(t, err)
	var out bytes.Buffer
	p := Calibration{Write: name, Out: &out}
	must.Do(t, p.project(t.Context(), vectors(240, before.Joined.Projection.Cols), 240, before.Joined.Projection))
	after, err := models.Parse(readAll(t, name))
	must.Do(t, err)
	f, _ := after.File(models.RoleProjection)
	file := readAll(t, filepath.Join(filepath.Dir(name), f.Name))
	if _, err := after.Joined.Projection.Decode(file); err != nil {
		t.Error(err)
	}
	if len(after.Spectrum()) != after.Dim() || after.Calibration.Data == before.Calibration.Data {
		t.Errorf("a spectrum of %d values and the calibration %q", len(after.Spectrum()), after.Calibration.Data)
	}
	if after.ModelID() == before.ModelID() {
		t.Error("the projection has the hash of the one before")
	}
	for _, want := range []string{"fitted on 480 photographs of 240 persons", "1e-05", f.Name} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it says\n%s\nwant %q", out.String(), want)
		}
	}
}

func readAll(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	must.Do(t, err)
	return data
}

func TestProjectRefusesUnfitPack(t *testing.T) {
	t.Parallel()
	images := t.TempDir()
	f := func(want string) {
		t.Helper()
		p := Calibration{Source: Source{Pack: filepath.Join(packs(t), models.FoundingPack)}, Images: images, Out: new(bytes.Buffer)}
		if err := p.Project(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want one that says %q", err, want)
		}
	}
	for person := range personsMin {
		if person == 1 {
			f("1 persons are too few")
		}
		name := filepath.Join(images, strconv.Itoa(person), "x.jpg")
		must.Do(t, errors.Join(os.Mkdir(filepath.Dir(name), 0o700), os.WriteFile(name, nil, 0o600)))
	}
	f("has one embedder")
}
