package table

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Row is one line of a table. A goal of 0 means none.
type Row struct {
	What  string
	Value float64
	Unit  string
	Goal  float64
	Most  bool // the goal is the most, not the least
	About string
}

// Cells returns the line with tabs between its parts. It ends with whether the goal
// is met.
func (r Row) Cells() string {
	goal, verdict := "", ""
	if r.Goal != 0 {
		sign, met := "≥", r.Value >= r.Goal
		if r.Most {
			sign, met = "≤", r.Value <= r.Goal
		}
		goal, verdict = fmt.Sprintf("%s %g", sign, r.Goal), map[bool]string{true: "met", false: "MISSED"}[met]
	}
	return strings.Join([]string{r.What, fmt.Sprintf("%.*f %s", digits(r.Value), r.Value, r.Unit), goal, verdict, r.About}, "\t")
}

func digits(v float64) int {
	switch {
	case v >= 100:
		return 0
	case v >= 10:
		return 1
	}
	return 2
}

// Print writes a table. It returns the writer's error.
func Print(out io.Writer, title string, rows []Row) error {
	fmt.Fprintf(out, "\n%s\n", title)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintln(t, "  "+r.Cells())
	}
	return t.Flush()
}
