package table_test

import (
	"testing"

	"facet/scripts/bench/table"
)

func TestGoalsAreJudgedByTheirSide(t *testing.T) {
	t.Parallel()
	f := func(r table.Row, want string) {
		t.Helper()
		if got := r.Cells(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	f(table.Row{What: "a", Value: 1.2, Unit: "×", Goal: 1.25, Most: true}, "a\t1.20 ×\t≤ 1.25\tmet\t")
	f(table.Row{What: "a", Value: 1.3, Unit: "×", Goal: 1.25, Most: true}, "a\t1.30 ×\t≤ 1.25\tMISSED\t")
	f(table.Row{What: "b", Value: .84, Goal: .85}, "b\t0.84 \t≥ 0.85\tMISSED\t")
	f(table.Row{What: "c", Value: 123.4, Unit: "ms", About: "x"}, "c\t123 ms\t\t\tx")
	f(table.Row{What: "d", Value: .83, Unit: "×", Goal: .8}, "d\t0.83 ×\t≥ 0.8\tmet\t")
	f(table.Row{What: "d", Value: .79, Unit: "×", Goal: .8}, "d\t0.79 ×\t≥ 0.8\tMISSED\t")
	f(table.Row{What: "e", Value: 0, Goal: .5, Most: true}, "e\t0.00 \t≤ 0.5\tmet\t")
}
