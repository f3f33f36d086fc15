package bench

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	packs "facet/cmd/facet/models"
	"facet/engine/enginetest"
	"facet/internal/must"
)

// sampleFolder returns the sample photographs by person: six of one man, one each
// of others, and a cup without a face filed under a name.
func sampleFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	add := func(person string, n int, photo string) {
		name := filepath.Join(dir, person, person+"_000"+string(rune('0'+n))+filepath.Ext(photo))
		must.Do(t, os.MkdirAll(filepath.Dir(name), 0o700))
		must.Do(t, os.WriteFile(name, enginetest.Photo(t, photo), 0o600))
	}
	for i, photo := range enginetest.Obama {
		add("Barack_Obama", i+1, photo)
	}
	add("Joe_Biden", 1, "face_recognition/biden.jpg")
	add("Eileen_Collins", 1, "scikit-image/astronaut.png")
	add("Woman", 1, "face-api/sample1.jpg")
	add("Cup", 1, "scikit-image/coffee.png")
	return dir
}

// sampleConfig returns a measurement of the default pack on the sample photographs.
func sampleConfig(t *testing.T, out *bytes.Buffer) Config {
	t.Helper()
	return Config{
		Source: packs.Source{Pack: enginetest.PackDir(enginetest.Assets(t)), ONNXRuntime: enginetest.Library(t)},
		Images: sampleFolder(t), Pairs: PairsAll, Dataset: "samples", Out: out,
		JSON: filepath.Join(t.TempDir(), "a.json"), Faces: FacesMiddle,
	}
}

func document(t *testing.T, file string) Document {
	t.Helper()
	text, err := os.ReadFile(file)
	must.Do(t, err)
	var d Document
	must.Do(t, json.Unmarshal(text, &d))
	return d
}

// The persons are those of the sample photographs.
func TestNoOtherPersonReaches7000(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	cfg := sampleConfig(t, &out)
	cfg.Plot, cfg.Groups = filepath.Join(t.TempDir(), "det.svg"), filepath.Join(t.TempDir(), "groups.csv")
	must.Do(t, os.WriteFile(cfg.Groups, []byte("person,office\nBarack_Obama,president\nJoe_Biden,president\nEileen_Collins,astronaut\n"), 0o600))
	must.Do(t, Accuracy(t.Context(), cfg))
	d := document(t, cfg.JSON)
	if d.Data.Persons != 5 || d.Data.Photos != 10 || d.Data.Faceless != 1 || d.Data.FTA.Value != .1 {
		t.Errorf("data: %+v, want 5 persons, 10 photographs, one without a face", d.Data)
	}
	v := d.All
	// Six photographs of one man, three of others, and the cup with all nine.
	if v.MatedPairs != 15 || v.NonMatedPairs != 6*3+3 || v.NonMatedFailed != 9 {
		t.Errorf("pairs: %d mated, %d non-mated, %d failed", v.MatedPairs, v.NonMatedPairs, v.NonMatedFailed)
	}
	for _, a := range v.At {
		if a.Threshold == stated && (a.FMR.Events > 0 || a.FNMR.Events > 0) {
			t.Errorf("at %d: FMR %v, FNMR %v, want no error", a.Threshold, a.FMR, a.FNMR)
		}
	}
	for _, want := range []string{"FTA 10.00 % [1.79–40.42]", "15 mated, 21 non-mated compared", "GFRR", "7000", "lowest quality are discarded"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the tables do not say %q:\n%s", want, out.String())
		}
	}
	if plot, err := os.ReadFile(cfg.Plot); err != nil || !bytes.Contains(plot, []byte("<svg")) {
		t.Errorf("the plot: %v", err)
	}
	checkGroups(t, &d, out.String())
}

func TestPairListIsMeasuredWithItsFailures(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	cfg := sampleConfig(t, &out)
	cfg.Pairs = filepath.Join(t.TempDir(), "pairs.txt")
	list := "2\t2\nBarack_Obama\t1\t2\nBarack_Obama\t1\t3\nBarack_Obama\t1\tJoe_Biden\t1\nJoe_Biden\t1\tCup\t1\n" +
		"Barack_Obama\t2\t3\nBarack_Obama\t3\t4\nEileen_Collins\t1\tJoe_Biden\t1\nWoman\t1\tEileen_Collins\t1\n"
	must.Do(t, os.WriteFile(cfg.Pairs, []byte(list), 0o600))
	must.Do(t, Accuracy(t.Context(), cfg))
	d := document(t, cfg.JSON)
	if d.All != nil || d.Data.Photos != 8 {
		t.Errorf("%d photographs, all pairs %v: want those of the list only", d.Data.Photos, d.All != nil)
	}
	if d.List.MatedPairs != 4 || d.List.NonMatedPairs != 3 || d.List.NonMatedFailed != 1 || d.List.Folds.N != 2 || d.List.Folds.Mean != 1 {
		t.Errorf("list: %+v, folds %+v", d.List.Verification, d.List.Folds)
	}
	must.Do(t, os.WriteFile(cfg.Pairs, []byte("1\t1\nCup\t1\t2\nCup\t1\tWoman\t1\n"), 0o600))
	if err := Accuracy(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), `photograph 2 of "Cup"`) {
		t.Errorf("a pair that is not in the folder: %v", err)
	}
}

func TestSamplesAreIdentified(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	cfg := sampleConfig(t, &out)
	must.Do(t, Identify(t.Context(), cfg))
	id := document(t, cfg.JSON).Identification
	if id.Persons != 5 || id.NotEnrolled.Events != 1 || len(id.Sizes) != 1 {
		t.Fatalf("got %+v, want five persons of whom one is not enrolled, one size", id)
	}
	s := id.Sizes[0]
	if s.N != 4 || s.Rank1.Events != 5 || s.Rank1.Trials != 5 {
		t.Errorf("gallery of %d: rank 1 %d of %d, want 4 and 5 of 5", s.N, s.Rank1.Events, s.Rank1.Trials)
	}
	for _, a := range s.At {
		if a.Threshold == stated && (a.FPIR.Events > 0 || a.FPIR.Trials != 9 || a.FNIR.Events > 0) {
			t.Errorf("at %d: FPIR %v of %d, FNIR %v", a.Threshold, a.FPIR, a.FPIR.Trials, a.FNIR)
		}
	}
	if !strings.Contains(out.String(), "rank 1") {
		t.Errorf("no table of galleries:\n%s", out.String())
	}
}

func TestMissingInputIsASentence(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	f := func(want string, change func(c *Config)) {
		t.Helper()
		cfg := sampleConfig(t, &out)
		change(&cfg)
		if err := Accuracy(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q", err, want)
		}
	}
	f("there is no folder", func(c *Config) { c.Images = filepath.Join(c.Images, "none") })
	f("there is no model pack", func(c *Config) { c.Source.Pack = c.Images })
	f("ONNX Runtime is not at", func(c *Config) { c.Source.ONNXRuntime = "none" })
	f("read list of pairs", func(c *Config) { c.Pairs = "none" })
	f("read manifest.json", func(c *Config) { c.Pairs = filepath.Join(c.Source.Pack, "manifest.json") })
}

// Of one man's photographs three show somebody else: half as large behind him, alike, and small in the middle.
func TestEndToEndCountsRefusals(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, photo := range map[string][]byte{
		"Barack_Obama/1.jpg": enginetest.Photo(t, "face_recognition/obama.jpg"),
		"Barack_Obama/2.jpg": enginetest.Behind(t),
		"Barack_Obama/3.jpg": enginetest.Alike(t),
		"Barack_Obama/4.jpg": enginetest.Aside(t),
		"Joe_Biden/1.jpg":    enginetest.Photo(t, "face_recognition/biden.jpg"),
		"Pair/1.jpg":         enginetest.Alike(t),
	} {
		file := filepath.Join(dir, name)
		must.Do(t, os.MkdirAll(filepath.Dir(file), 0o700))
		must.Do(t, os.WriteFile(file, photo, 0o600))
	}
	f := func(faces string, several, chosen int, found int64) {
		t.Helper()
		var out bytes.Buffer
		cfg := sampleConfig(t, &out)
		cfg.Images, cfg.Faces = dir, faces
		must.Do(t, Identify(t.Context(), cfg))
		d := document(t, cfg.JSON)
		r := d.EndToEnd
		if d.Data.Several != several || d.Data.Chosen != chosen || d.Data.Aside != 1 || r == nil || r.NotEnrolled.Events != 1 || r.NotEnrolled.Trials != 3 || r.Rank1.Events != found || r.Rank1.Trials != 3 {
			t.Errorf("%s: %+v, %+v", faces, d.Data, r)
		}
		if want := "End to end, --faces " + faces; !strings.Contains(out.String(), want) {
			t.Errorf("the tables do not say %q:\n%s", want, out.String())
		}
	}
	f(FacesRefuse, 3, 0, 1)
	f(FacesDominant, 2, 1, 2)
}
