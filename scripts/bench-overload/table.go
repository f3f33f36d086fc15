package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// row is one line of a table. A goal of 0 is none.
type row struct {
	what  string
	value float64
	unit  string
	goal  float64
	most  bool // the goal is the most, not the least
	about string
}

func (r row) cells() string {
	goal, verdict := "", ""
	if r.goal != 0 {
		sign, met := "≥", r.value >= r.goal
		if r.most {
			sign, met = "≤", r.value <= r.goal
		}
		goal, verdict = fmt.Sprintf("%s %g", sign, r.goal), map[bool]string{true: "met", false: "MISSED"}[met]
	}
	return strings.Join([]string{r.what, fmt.Sprintf("%.*f %s", digits(r.value), r.value, r.unit), goal, verdict, r.about}, "\t")
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

func printTable(out io.Writer, title string, rows []row) error {
	fmt.Fprintf(out, "\n%s\n", title)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintln(t, "  "+r.cells())
	}
	return t.Flush()
}

// processor names the machine's processor as the kernel does.
func processor() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if name, value, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}

// sample are measurements of one thing.
type sample []time.Duration

// ms returns the quantile q, 0 to 1, in milliseconds; 0 of none.
func (s sample) ms(q float64) float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)].Seconds() * 1e3
}

// times tells a sample's quantiles.
func (s sample) times() string {
	return fmt.Sprintf("p50 %.1f, p99 %.1f, max %.1f ms of %d", s.ms(.5), s.ms(.99), s.ms(1), len(s))
}
