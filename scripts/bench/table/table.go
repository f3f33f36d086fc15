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
	Most  bool // the goal is an upper bound
	About string
}

// cells returns the columns of the row. They include the goal and whether it is met.
func (r Row) cells() []string {
	goal, verdict := "", ""
	if r.Goal != 0 {
		sign, met := "≥", r.Value >= r.Goal
		if r.Most {
			sign, met = "≤", r.Value <= r.Goal
		}
		goal, verdict = fmt.Sprintf("%s %g", sign, r.Goal), map[bool]string{true: "met", false: "MISSED"}[met]
	}
	return []string{r.What, strings.TrimSpace(fmt.Sprintf("%.*f %s", digits(r.Value), r.Value, r.Unit)), goal, verdict, r.About}
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

// Print writes a table of measurements and their goals.
func Print(out io.Writer, title string, rows []Row) error {
	lines := make([][]string, len(rows))
	for i, r := range rows {
		lines[i] = r.cells()
	}
	return Write(out, title, []string{"", "measured", "goal", "", ""}, lines)
}

// Write writes a table whose columns are aligned.
func Write(out io.Writer, title string, head []string, lines [][]string) error {
	fmt.Fprintf(out, "\n## %s\n\n", title)
	t := tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)
	for _, cells := range append([][]string{head, dashes(head)}, lines...) {
		fmt.Fprintf(t, "| %s\t|\n", strings.Join(cells, "\t| "))
	}
	return t.Flush()
}

// Head writes the first two lines of a table. Line then writes each row.
func Head(out io.Writer, head ...string) {
	fmt.Fprintln(out)
	Line(out, head...)
	Line(out, dashes(head)...)
}

// Line writes one line.
func Line(out io.Writer, cells ...string) { fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | ")) }

func dashes(head []string) []string {
	return strings.Split(strings.Repeat(" ---", len(head))[1:], " ")
}
