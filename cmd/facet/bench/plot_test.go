package bench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"facet/internal/must"
)

func TestPlotPlacesValuesOnItsAxes(t *testing.T) {
	t.Parallel()
	p := newPlot(linearAxis("across", 100), linearAxis("up", 5))
	p.addCurve("a curve", blue, []point{{X: 0, Y: 0}, {X: 50, Y: 2.5}, {X: 100, Y: 5}})
	p.addCurve("nothing", orange, nil)
	p.Series = append(p.Series, series{Name: "dots", Colour: blue, Dots: true, Points: []point{{X: 100, Y: 0, Label: "corner"}}})
	file := filepath.Join(t.TempDir(), "plot.svg")
	must.Do(t, p.write(file))
	text, err := os.ReadFile(file)
	must.Do(t, err)
	picture := string(text)
	for _, want := range []string{
		` points="56,304 245,155 434,6"/>`, `<circle cx="434" cy="304" r="3"/>`, `<text x="434" y="304" dx="5" dy="-5">corner</text>`,
		`<text x="56" y="304" dy="16">0</text>`, `<text x="207.2" y="304" dy="16">40</text>`, `<text x="434" y="304" dy="16">100</text>`,
		`<text x="56" y="6" dx="-8" dy="3.5">5</text>`, `<text x="245" y="335">across</text>`, `>up</text>`,
		`<g transform="translate(434 14)"><path d="M-22 0h20" stroke="#1f5fb0"`, `>a curve</text></g>`,
		`<g transform="translate(434 28)"><circle cx="-12" r="3" fill="#1f5fb0"/>`, `>dots</text></g>`,
	} {
		if !strings.Contains(picture, want) {
			t.Errorf("the picture has no %s", want)
		}
	}
	if strings.Contains(picture, "nothing") || t.Failed() {
		t.Errorf("the picture:\n%s", picture)
	}
}

func TestLinearAxisEndsAboveItsValues(t *testing.T) {
	t.Parallel()
	f := func(most, wantEnd float64, wantTicks int) {
		t.Helper()
		ticks := linearAxis("", most).Ticks
		if end := ticks[len(ticks)-1].Value; end != wantEnd || len(ticks) != wantTicks {
			t.Errorf("up to %v: %d ticks, the last at %v, want %d and %v", most, len(ticks), end, wantTicks, wantEnd)
		}
	}
	f(0, 1, 2)
	f(.0028, .003, 7)
	f(5.06, 6, 7)
	f(9.9, 10, 6)
	f(40, 40, 5)
	f(100, 100, 6)
}

func TestDETAxisIsStraightInDeviates(t *testing.T) {
	t.Parallel()
	a := deviateAxis("", []float64{1e-7, .1, .5, .9})
	if d := a.Ticks[3].Value + a.Ticks[1].Value; d > 1e-9 || d < -1e-9 || a.Ticks[2].Value != 0 {
		t.Errorf("ticks are not normal deviates: %v", a.Ticks)
	}
	if a.Ticks[0].Label != "1e-7" || a.Ticks[1].Label != "10 %" {
		t.Errorf("labels: %v", a.Ticks)
	}
}
