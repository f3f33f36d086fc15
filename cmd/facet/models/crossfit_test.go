package models

import (
	"math"
	"testing"

	"facet/engine"
	"facet/internal/must"
)

// What the photographs of two parts of the persons look like does not change the fit that scores
// comparisons of these parts; it changes the others.
func TestCrossFitHasNotSeenThePersons(t *testing.T) {
	t.Parallel()
	const persons = 300
	x := vectors(persons, 24)
	fold := foldsOf(persons)
	before, err := CrossFitted(t.Context(), x, persons, nil)
	must.Do(t, err)
	var scores [][]int
	for i := range x.Samples {
		scores = append(scores, nil)
		for j := range i {
			scores[i] = append(scores[i], before(i, j))
		}
	}
	// All second photographs of two parts are more alike.
	for i, s := range x.Samples {
		if fold[s.Person] < 2 && i%2 == 1 {
			x.Templates[i] = halfway(x.Templates[i], x.Templates[0])
		}
	}
	after, err := CrossFitted(t.Context(), x, persons, nil)
	must.Do(t, err)
	same, others, counted := 0, 0, 0
	for i := 0; i < len(x.Samples); i += 2 {
		for j := 0; j < i; j += 2 {
			changed := after(i, j) != scores[i][j]
			switch a, b := fold[x.Samples[i].Person], fold[x.Samples[j].Person]; {
			case a < 2 && b < 2 && a != b:
				if counted++; changed {
					same++
				}
			case changed && a > 1 && b > 1:
				others++
			}
		}
	}
	if counted != 60*60 || same > 0 || others == 0 {
		t.Errorf("%d of %d scores between the two parts changed, and %d of the others", same, counted, others)
	}
	if _, err := CrossFitted(t.Context(), x, personsMin-1, nil); err == nil {
		t.Error("too few persons are fitted")
	}
}

// halfway returns the unit vector in the middle of two.
func halfway(a, b engine.Template) engine.Template {
	unit := make(engine.Template, len(a))
	var squares float64
	for i := range a {
		unit[i] = a[i] + b[i]
		squares += float64(unit[i] * unit[i])
	}
	for i := range unit {
		unit[i] /= float32(math.Sqrt(squares))
	}
	return unit
}
