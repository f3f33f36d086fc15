package engine_test

import (
	"fmt"
	"testing"

	"facet/engine"
	"facet/engine/enginetest"
)

// labelled is a template and the person whose it is.
type labelled struct {
	who      string
	template engine.Template
}

// samplePeople are the largest faces of the sample portraits.
func samplePeople(t *testing.T) []labelled {
	t.Helper()
	var all []labelled
	for _, p := range everybody(t) {
		all = append(all, labelled{p.who, p.face.Template})
	}
	for i, f := range extract(t, enginetest.Photo(t, "face-api/sample5.jpg")) {
		all = append(all, labelled{fmt.Sprint("woman ", i), f.Template})
	}
	return all
}

// TestSamplesMatchWithoutError compares every sample photograph with every
// other one: no pair may be on the wrong side of 7000.
func TestSamplesMatchWithoutError(t *testing.T) {
	t.Parallel()
	e := enginetest.Shared(t)
	people := samplePeople(t)
	mated, others := 0, 0
	for i, a := range people {
		for _, b := range people[:i] {
			s := e.Compare(a.template, b.template)
			switch {
			case a.who == b.who && s < 7000, a.who != b.who && s >= 7000:
				t.Errorf("%s and %s have %d", a.who, b.who, s)
			case a.who == b.who:
				mated++
			default:
				others++
			}
		}
	}
	if mated == 0 || others == 0 {
		t.Errorf("%d mated and %d non-mated pairs", mated, others)
	}
}
