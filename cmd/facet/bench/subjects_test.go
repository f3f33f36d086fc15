package bench

import (
	"math"
	"testing"

	"facet/engine"
	"facet/engine/models"
	"facet/engine/score"
	"facet/internal/must"
)

// A photograph between two others is more like their mean than like either.
func TestMeansCountBesideTheBestPhotograph(t *testing.T) {
	t.Parallel()
	manifest, err := models.Parse(models.Default())
	must.Do(t, err)
	at := func(degrees float64) engine.Template {
		sin, cos := math.Sincos(degrees * math.Pi / 180)
		return engine.Template{float32(cos), float32(sin)}
	}
	m := &measured{templates: []engine.Template{at(0), at(110), at(55), at(0), at(180)}, table: tableOf(t, manifest)}
	m.compare = func(a, b int) int { return m.table.Score(score.Dot(m.templates[a], m.templates[b])) }
	// Person 0 has two photographs, person 1 has one, person 2 two opposite ones.
	enrolled := [][]int{{0, 1}, {3}, {0, 4}}
	best := m.compare.Best(enrolled)
	subjects := m.subjects(enrolled, best)
	if got := best(2, 0); got == score.Max || subjects(2, 0) != score.Max {
		t.Errorf("between two photographs: %d with the best, %d with the mean", got, subjects(2, 0))
	}
	if subjects(2, 1) != best(2, 1) || subjects(0, 2) != score.Max {
		t.Errorf("one photograph: %d, want %d; a photograph that is enrolled: %d", subjects(2, 1), best(2, 1), subjects(0, 2))
	}
}
