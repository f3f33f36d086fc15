package bench

import (
	_ "embed"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"

	"facet/engine/accuracy"
)

//go:embed report.md.tmpl
var reportText string

//go:embed lfw.md
var aboutLFW string

// FMRs and sizes of the tables about galleries.
var (
	gallerySizes = []int64{1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000}
	wantedFPIR   = []float64{.1, .01}
)

// supportedMax is the highest score for which the calibration states a meaning.
const supportedMax = 8000

// page is the input of the report's template.
type page struct {
	*Document
	About              string
	Verifications      []section
	All                *statedAt
	Largest            *accuracy.Size
	Targets, Galleries string
	Advice             string
	IdentificationText string
	Identification     string
	Discard            string
	Pack               packText
	EventsMin          int
	Resamples, Draws   int
}

type section struct{ Title, Text, Table string }

// statedAt is the result of a verification, with the error rates at the stated
// threshold.
type statedAt struct {
	*accuracy.Verification
	Stated accuracy.AtThreshold
}

type packText struct {
	Pack
	Note, Calibration string
}

// report writes the page and its pictures.
func report(file string, doc *Document) error {
	pictures := filepath.Join(filepath.Dir(file), "pictures")
	if err := os.MkdirAll(pictures, 0o755); err != nil {
		return err
	}
	if err := plotDET(doc, filepath.Join(pictures, "det.svg")); err != nil {
		return err
	}
	if err := plotDiscard(doc.All.Discard, filepath.Join(pictures, "discard.svg")); err != nil {
		return err
	}
	text := template.New("report").Funcs(template.FuncMap{"number": number[int64], "count": number[int], "power": power})
	if _, err := text.Parse(reportText); err != nil {
		panic("bug: the report's template: " + err.Error())
	}
	var out strings.Builder
	if err := text.Execute(&out, doc.page()); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(out.String()), 0o644)
}

func (d *Document) page() *page {
	p := &page{
		Document: d, Pack: packText{d.Pack, d.Pack.manifest.Note, d.Pack.manifest.Calibration.Data},
		All: &statedAt{Verification: d.All}, Targets: targetTable(d.All).markdown(),
		Galleries: d.galleryTable().markdown(), Advice: d.adviceTable().markdown(),
		Identification: d.sizeTable(d.Identification).markdown(), Discard: discardTable(d.All.Discard).markdown(),
		EventsMin: accuracy.EventsMin, Resamples: accuracy.Resamples, Draws: accuracy.GalleryDraws,
	}
	if strings.HasPrefix(d.Data.Name, "LFW") {
		p.About = aboutLFW
	}
	for _, a := range d.All.At {
		if a.Threshold == stated {
			p.All.Stated = a
		}
	}
	if n := len(d.Identification.Sizes); n > 0 {
		p.Largest = &d.Identification.Sizes[n-1]
	}
	p.IdentificationText = fmt.Sprintf("The first photograph of each person is enrolled. Of each size N, %d galleries of persons drawn at random are searched "+
		"(one of all persons). Mated searches: the other photographs of enrolled persons; FNIR counts those whose mate is below the threshold or not among the first %d candidates, "+
		"and equal scores count against the mate. Non-mated searches: every photograph, with its own person left out. Persons who can't be enrolled, for none of their photographs has a face: FTE %s (%d of %s).",
		accuracy.GalleryDraws, accuracy.ListLength, accuracy.Format(d.Identification.NotEnrolled.Value), d.Identification.NotEnrolled.Events, number(d.Identification.NotEnrolled.Trials))
	if d.List != nil {
		s := section{Title: "The list of pairs", Text: describe(d.List.Verification) + ".", Table: rateTable(d.List.Verification).markdown()}
		if f := d.List.Folds; f != nil {
			s.Text += fmt.Sprintf(" By the protocol of the list, each of %d folds decided at the threshold that is best on the others (%d to %d): **%.2f ± %.2f %% of the decisions are right** (mean and standard error over the folds; a pair without a face counts as told apart).",
				f.N, f.ThresholdMin, f.ThresholdMax, 100*f.Mean, 100*f.StandardError)
		}
		p.Verifications = append(p.Verifications, s)
	}
	p.Verifications = append(p.Verifications, section{
		Title: "Every photograph with every other one",
		Text:  describe(d.All) + ". Harder and more telling than the list: every pair of persons is there, and every photograph.",
		Table: rateTable(d.All).markdown(),
	})
	return p
}

// falsePositive returns FPIR in a gallery of n by the formula.
func falsePositive(fmr float64, n int64) float64 { return -math.Expm1(float64(n) * math.Log1p(-fmr)) }

// galleryTable returns a table of FPIR by gallery size and threshold. The values
// follow from the formula.
func (d *Document) galleryTable() table {
	searched := int64(0)
	for _, s := range d.Identification.Sizes {
		searched = max(searched, int64(s.N))
	}
	head := []string{"N"}
	for _, a := range d.All.At {
		name := fmt.Sprintf("%d (FMR %s)", a.Threshold, accuracy.Format(a.FMR.Value))
		if a.FMR.Events < accuracy.EventsMin {
			name += " ‡"
		}
		head = append(head, name)
	}
	t := table{head}
	for _, n := range gallerySizes {
		row := []string{number(n)}
		if n > searched {
			row[0] += " †"
		}
		for _, a := range d.All.At {
			row = append(row, accuracy.Format(falsePositive(a.FMR.Value, n)))
		}
		t = append(t, row)
	}
	return t
}

// adviceTable returns a table of the least threshold by gallery size and wanted
// FPIR.
func (d *Document) adviceTable() table {
	head := []string{"N"}
	for _, w := range wantedFPIR {
		head = append(head, fmt.Sprintf("FPIR ≤ %g %%", 100*w), "FNMR there")
	}
	t := table{head}
	for _, n := range gallerySizes {
		row := []string{number(n)}
		for _, w := range wantedFPIR {
			threshold, fnmr := d.leastThreshold(-math.Expm1(math.Log1p(-w) / float64(n)))
			row = append(row, threshold, fnmr)
		}
		t = append(t, row)
	}
	return t
}

// leastThreshold returns, as texts, the least threshold whose false match rate is
// at most fmr, and the FNMR at that threshold.
func (d *Document) leastThreshold(fmr float64) (threshold, fnmr string) {
	at, byPack := d.least(fmr)
	if at == 0 {
		return "none", "–"
	}
	threshold, fnmr = strconv.Itoa(at), accuracy.Format(d.all.FNMR[at])
	if byPack {
		threshold += " ‡"
	}
	return threshold, fnmr
}

func discardTable(curve []accuracy.Discard) table {
	t := table{{"discarded", "quality kept from", "FNMR at 7000", "pairs kept"}}
	for i, c := range curve {
		if i%2 == 0 || i == 1 { // from none in tenths, and the first twentieth
			t = append(t, []string{accuracy.Format(c.Share), fmt.Sprintf("%.2f", c.Quality), accuracy.Format(c.FNMR.Value), number(c.FNMR.Trials)})
		}
	}
	return t
}
