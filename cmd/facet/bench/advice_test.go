package bench

import (
	"bytes"
	"strings"
	"testing"

	"facet/internal/must"
)

func TestAdviceKeepsToTheWantedAlarms(t *testing.T) {
	t.Parallel()
	d := simulatedAs(t, Config{Photos: 2, Wanted: Wanted{Searches: 100, Alarms: 20, Gallery: 1_000_000_000}})
	if id := d.Identification; id.Photos != 120+60 { // 60 persons have three or four
		t.Errorf("%d photographs are enrolled", id.Photos)
	}
	sizes := d.Advice.Sizes
	if d.Advice.FPIR != .2 || len(sizes) != 4 || sizes[0].N != 10 || sizes[2].N != 120 {
		t.Fatalf("%+v", d.Advice)
	}
	for i, s := range sizes[:3] {
		if s.Stated || s.FPIR == nil || s.FPIR.Interval.Low > .2 || s.FPIR.Interval.High < .1 || s.FNIR == nil {
			t.Errorf("%+v: FPIR %v, FNIR %v, want at most and about .2", s, s.FPIR, s.FNIR)
		}
		if i > 0 && s.Threshold <= sizes[i-1].Threshold {
			t.Errorf("a larger gallery has no higher threshold: %+v", sizes)
		}
	}
	if s := sizes[3]; s.N != 1_000_000_000 || s.Threshold != 0 || s.FPIR != nil {
		t.Errorf("a gallery of a thousand million persons: %+v", s)
	}
	var out bytes.Buffer
	must.Do(t, d.print(&out))
	for _, part := range []string{"100 searches a day of people who are not enrolled, of which at most 20 may find somebody", "these photographs", "1,000,000,000", "none"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("the output has no %q:\n%s", part, &out)
		}
	}
	// Few alarms wanted: too few comparisons tell that rate.
	d = simulatedAs(t, Config{Wanted: Wanted{Searches: 10_000, Alarms: 1}})
	if s := d.Advice.Sizes[0]; !s.Stated || s.Threshold != 7000 {
		t.Errorf("1e-5 in a gallery of 10: %+v, want what the pack states for that", s)
	}
}
