package bench

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"

	packs "facet/cmd/facet/models"
	"facet/engine/accuracy"
)

// table is a list of rows, the first with the heads. It is printed as text or as
// Markdown.
type table [][]string

func (t table) text(w io.Writer) error {
	tabs := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range t {
		fmt.Fprintln(tabs, "  "+strings.Join(row, "\t"))
	}
	return tabs.Flush()
}

func (t table) markdown() string {
	var b strings.Builder
	for i, row := range t {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			b.WriteString("|" + strings.Repeat("---|", len(row)) + "\n")
		}
	}
	return b.String()
}

// print writes all tables.
func (d *Document) print(w io.Writer) error {
	fmt.Fprintf(w, "pack %s %s (%s), %d persons, %d photographs, of which %d give no face: FTA %v\n",
		d.Pack.Name, d.Pack.Version, d.Pack.ID[:12], d.Data.Persons, d.Data.Photos, d.Data.FTA.Events, d.Data.FTA)
	fmt.Fprintf(w, "without a face %d, unreadable %d, poor %d, several faces %d; one of several taken %d; another one than the middle one taken %d\n",
		d.Data.Faceless, d.Data.Unreadable, d.Data.Poor, d.Data.Several, d.Data.Chosen, d.Data.Aside)
	if d.Data.CrossFit {
		fmt.Fprintf(w, "scores fitted in %d parts of the persons, each comparison by a fit that saw neither person\n", packs.Folds)
	}
	if d.EndToEnd != nil {
		fmt.Fprintln(w, d.EndToEnd.line(d.Data.Faces, d.Data.QualityMin))
	}
	for _, part := range d.parts() {
		fmt.Fprintf(w, "\n%s\n", part.title)
		if err := part.table.text(w); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(w, "\nIn brackets: 95 % intervals, by resampling of persons.")
	return err
}

// part is a table with its title.
type part struct {
	title string
	table table
}

func (d *Document) parts() []part {
	var parts []part
	if d.List != nil {
		parts = append(parts, part{"Verification, the pairs of the list: " + describe(d.List.Verification), rateTable(d.List.Verification)})
		if d.List.Folds != nil {
			parts = append(parts, part{"Protocol of the list", foldTable(d.List.Folds)})
		}
	}
	if d.All != nil {
		parts = append(parts,
			part{"Verification, every pair: " + describe(d.All), rateTable(d.All)},
			part{"FNMR at the lowest threshold whose FMR is at most", targetTable(d.All)},
			part{"FNMR when the mated pairs of the lowest quality are discarded", discardTable(d.All.Discard)})
	}
	for _, g := range d.Groups {
		parts = append(parts,
			part{"Groups by " + g.Attribute + ", each compared with itself; a rate of fewer than " + strconv.Itoa(accuracy.EventsMin) + " errors is not shown", groupTable(g)},
			part{"How far the groups by " + g.Attribute + " differ", spreadTable(g)})
	}
	if d.Identification != nil {
		title := "Identification"
		if d.Subjects != nil {
			title += ", by the best of several photographs"
		}
		parts = append(parts, part{title, d.sizeTable(d.Identification)})
	}
	if d.Subjects != nil {
		parts = append(parts, part{"Identification, with subjectTemplates", d.sizeTable(d.Subjects)})
	}
	if d.Advice != nil {
		parts = append(parts, part{d.Advice.title(), d.Advice.table()})
	}
	return parts
}

func describe(v *accuracy.Verification) string {
	text := fmt.Sprintf("%s mated, %s non-mated compared; EER %v at %d", number(v.MatedPairs), number(v.NonMatedPairs), v.EER, v.EERThreshold)
	if failed := v.MatedFailed + v.NonMatedFailed; failed > 0 {
		text += fmt.Sprintf("; %s mated and %s non-mated pairs lack a face", number(v.MatedFailed), number(v.NonMatedFailed))
	}
	return text
}

func rateTable(v *accuracy.Verification) table {
	t := table{{"threshold", "FMR", "false matches", "FNMR", "FNMR, mean over persons", "GFAR", "GFRR"}}
	every := len(v.At) > 0 && v.At[len(v.At)-1].FMRPerson != nil
	if every {
		t[0] = []string{"threshold", "FMR", "false matches (pairs of persons)", "FMR, mean over pairs of persons", "FNMR", "FNMR, mean over persons", "GFAR", "GFRR"}
	}
	for _, a := range v.At {
		row := []string{strconv.Itoa(a.Threshold), a.FMR.String(), number(a.FMR.Events)}
		if every {
			row[2] = fmt.Sprintf("%s (%s)", number(a.FMR.Events), number(a.FalsePersonPairs))
			if a.FMRPerson == nil { // too many matched to keep them
				row = append(row, "–")
			} else {
				row = append(row, a.FMRPerson.String())
			}
		}
		t = append(t, append(row, a.FNMR.String(), a.FNMRPerson.String(), accuracy.Format(a.GFAR.Value), accuracy.Format(a.GFRR.Value)))
	}
	return t
}

func targetTable(v *accuracy.Verification) table {
	t := table{{"FMR", "threshold", "FNMR"}}
	for _, a := range v.Targets {
		t = append(t, []string{"≤ " + power(a.Target), strconv.Itoa(a.Threshold), a.FNMR.String()})
	}
	return t
}

func foldTable(f *accuracy.Folds) table {
	return table{
		{"folds", "right decisions, mean ± standard error", "thresholds"},
		{strconv.Itoa(f.N), fmt.Sprintf("%.2f ± %.2f %%", 100*f.Mean, 100*f.StandardError), fmt.Sprintf("%d–%d", f.ThresholdMin, f.ThresholdMax)},
	}
}

// sizeTable returns one row for each size and threshold.
func (d *Document) sizeTable(id *accuracy.Identification) table {
	t := table{{"N", "rank 1", fmt.Sprintf("rank %d", accuracy.ListLength), "threshold", "FNIR", "FPIR", "1 − (1 − FMR)^N"}}
	for _, s := range id.Sizes {
		for i, a := range s.At {
			row := []string{"", "", "", strconv.Itoa(a.Threshold), a.FNIR.String(), a.FPIR.String(), accuracy.Format(falsePositive(d.All.At[i].FMR.Value, int64(s.N)))}
			if i == 0 {
				row[0], row[1], row[2] = number(s.N), s.Rank1.String(), s.RankList.String()
			}
			t = append(t, row)
		}
	}
	return t
}

// power formats a power of ten.
func power(rate float64) string {
	return fmt.Sprintf("1e%d", int(math.Round(math.Log10(rate))))
}

// number formats a whole number with separated thousands.
func number[T int | int64](n T) string {
	s := strconv.FormatInt(int64(n), 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
