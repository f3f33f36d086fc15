package bench

import (
	"encoding/xml"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"facet/engine"
	"facet/engine/accuracy"
	"facet/engine/models"
	"facet/engine/score"
	"facet/internal/must"
)

var simulatedOnce struct {
	sync.Mutex
	document *Document
}

// simulated returns a document of made-up persons, which all tests share. There are as many photographs
// as persons. Scores are normal: non-mated ones around 1000, mated ones around 7500.
func simulated(t testing.TB) *Document {
	t.Helper()
	simulatedOnce.Lock()
	defer simulatedOnce.Unlock()
	if simulatedOnce.document == nil {
		simulatedOnce.document = simulatedAs(t, Config{})
	}
	return simulatedOnce.document
}

func tableOf(t testing.TB, m *models.Manifest) *score.Table {
	t.Helper()
	var points []score.Point
	for _, p := range m.Calibration.Points {
		points = append(points, score.Point(p))
	}
	table, err := score.NewTable(points)
	must.Do(t, err)
	return table
}

// simulatedAs is simulated with a configuration.
func simulatedAs(t testing.TB, cfg Config) *Document {
	t.Helper()
	manifest, err := models.Parse(models.Default())
	must.Do(t, err)
	var samples []accuracy.Sample
	for person := range 120 {
		for n := range 1 + person%4 {
			samples = append(samples, accuracy.Sample{Person: person, Acquired: person != 7 || n > 0, Quality: float32(person%10) / 10})
		}
	}
	compare := func(a, b int) int {
		r := rand.New(rand.NewPCG(uint64(min(a, b)), uint64(max(a, b))))
		mean := 1000.
		if samples[a].Person == samples[b].Person {
			mean = 7500
		}
		return int(min(max(mean+1500*r.NormFloat64(), 0), 9999))
	}
	// Templates of zeros: means are like nobody.
	m := measured{samples: samples, compare: compare, templates: make([]engine.Template, len(samples)), table: tableOf(t, manifest)}
	for i := range m.templates {
		m.templates[i] = engine.Template{0}
	}
	for i := range samples[:len(samples)-1] {
		p := accuracy.Pair{Fold: i % 5, A: accuracy.Photo{Person: "a"}, B: accuracy.Photo{Person: "a"}}
		if samples[i].Person != samples[i+1].Person {
			p.B.Person = "b"
		}
		m.pairs = append(m.pairs, p)
		m.places = append(m.places, [2]int{i, i + 1})
	}
	d := &Document{Pack: Pack{Name: "simulated", Version: "1", ID: strings.Repeat("0123456789abcdef", 4), FMR7000: 1e-5, manifest: manifest}}
	d.Data = Data{Name: "LFW, simulated", Persons: 120, Photos: len(samples), FTA: accuracy.Share(1, int64(len(samples))), Faceless: 1}
	for _, measure := range []func() error{
		func() error { return m.list(t.Context(), d) },
		func() error { return m.all(t.Context(), d) },
		func() error { return m.identify(t.Context(), cfg, d) },
	} {
		must.Do(t, measure())
	}
	return d
}

func TestReportHasItsTablesAndPictures(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "accuracy.md")
	must.Do(t, report(file, simulated(t)))
	page, err := os.ReadFile(file)
	must.Do(t, err)
	text := string(page)
	for _, want := range []string{
		"There is no liveness check", "ISO/IEC 30107-3", "1 − (1 − FMR)^N", "pictures/det.svg", "pictures/discard.svg",
		"10,000,000 †", "Faces in the Wild: A Database", "GFRR", "without a licence", "| 7000 | ", "of 5 folds",
		`--dataset "LFW, simulated" --report docs/benchmarks/accuracy.md`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	for _, bad := range []string{"<no value>", "NaN", "Inf", "%!", "{{", dir} {
		if strings.Contains(text, bad) {
			t.Errorf("the page says %q", bad)
		}
	}
	for _, name := range []string{"det.svg", "discard.svg"} {
		picture, err := os.ReadFile(filepath.Join(dir, "pictures", name))
		must.Do(t, err)
		var drawn struct {
			XMLName xml.Name `xml:"svg"`
			Curves  []struct {
				Points string `xml:"points,attr"`
			} `xml:"g>polyline"`
		}
		if err := xml.Unmarshal(picture, &drawn); err != nil || len(drawn.Curves) < 2 {
			t.Errorf("%s: %d curves are drawn, %v", name, len(drawn.Curves), err)
		}
		if strings.Contains(string(picture), "NaN") || strings.Contains(string(picture), "Inf") {
			t.Errorf("%s has a number that is none", name)
		}
	}
}

func TestSameMeasurementMakesTheSamePage(t *testing.T) {
	t.Parallel()
	var pages [2][]byte
	for i, d := range []*Document{simulated(t), simulatedAs(t, Config{})} {
		file := filepath.Join(t.TempDir(), "a.md")
		must.Do(t, report(file, d))
		var err error
		if pages[i], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(pages[0]), string(pages[1])); diff != "" {
		t.Error(diff)
	}
}

func TestGalleryTableFollowsTheFormula(t *testing.T) {
	t.Parallel()
	f := func(fmr float64, n int64, want float64) {
		t.Helper()
		if got := falsePositive(fmr, n); math.Abs(got-want) > 1e-3*want {
			t.Errorf("FPIR of %v in %d is %v, want %v", fmr, n, got, want)
		}
	}
	f(1e-5, 1, 1e-5)
	f(1e-5, 1000, .00995)
	f(1e-5, 100_000, .63212)
	f(1e-6, 10_000_000, .99995)
	f(.5, 2, .75)
	f(0, 10_000_000, 0)
}

// The advice comes from counts, else from the calibration, else there is none.
func TestThresholdAdviceNamesItsSource(t *testing.T) {
	t.Parallel()
	d := simulated(t)
	f := func(fmr float64, want string) {
		t.Helper()
		if got, _ := d.leastThreshold(fmr); got != want {
			t.Errorf("threshold for %v is %q, want %q", fmr, got, want)
		}
	}
	counted := d.all.ThresholdFor(.01)
	f(.01, strconv.Itoa((counted+49)/50*50))
	f(1e-4, "6000 ‡") // 44,254 pairs show no rate below 7e-4
	f(1e-5, "7000 ‡")
	f(2e-6, "7700 ‡")
	f(1e-6, "8000 ‡")
	f(9e-7, "none")
}
