package table

import (
	"bytes"
	"strings"
	"testing"

	"facet/internal/must"
)

func TestGoalsAreJudgedByTheirSide(t *testing.T) {
	t.Parallel()
	f := func(r Row, want string) {
		t.Helper()
		if got := strings.Join(r.cells(), "|"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	f(Row{What: "a", Value: 1.2, Unit: "×", Goal: 1.25, Most: true}, "a|1.20 ×|≤ 1.25|met|")
	f(Row{What: "a", Value: 1.3, Unit: "×", Goal: 1.25, Most: true}, "a|1.30 ×|≤ 1.25|MISSED|")
	f(Row{What: "b", Value: .84, Goal: .85}, "b|0.84|≥ 0.85|MISSED|")
	f(Row{What: "c", Value: 123.4, Unit: "ms", About: "x"}, "c|123 ms|||x")
	f(Row{What: "d", Value: .83, Unit: "×", Goal: .8}, "d|0.83 ×|≥ 0.8|met|")
	f(Row{What: "d", Value: .79, Unit: "×", Goal: .8}, "d|0.79 ×|≥ 0.8|MISSED|")
	f(Row{What: "e", Value: 0, Goal: .5, Most: true}, "e|0.00|≤ 0.5|met|")
}

func TestTableIsAlignedMarkdown(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	must.Do(t, Print(&out, "Title", []Row{{What: "ratio", Value: 2, Unit: "×", Goal: 1}, {What: "s", Value: 12}}))
	want := `
## Title

|       | measured | goal |     |     |
| ---   | ---      | ---  | --- | --- |
| ratio | 2.00 ×   | ≥ 1  | met |     |
| s     | 12.0     |      |     |     |
`
	if got := out.String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestProcessorBecomesPartOfFileName(t *testing.T) {
	t.Parallel()
	if got := slug("Intel(R) Xeon(R) CPU @ 2.20GHz"); got != "intel-r-xeon-r-cpu-2-20ghz" {
		t.Errorf("got %q", got)
	}
}
