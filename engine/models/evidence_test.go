package models

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEvidenceOfReleasedPackStays(t *testing.T) {
	t.Parallel()
	unit := float64(float32(1.8))
	want := Evidence{
		NormUnit: unit,
		Face:     FaceEvidence{Norm: 2.7, NormUsual: 1.39, Doubt: -3, Sure: 6.5, Even: 2.7, Slope: 1.8},
		Upright:  UprightEvidence{Norm: 1, Doubt: -2.8, Least: 1.28},
	}
	got := parsed(t, Default()).Evidence()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the default pack's evidence (-want +got):\n%s", diff)
	}
	// The sums have the bits of release 0.1.
	norm, doubt := 2.9187, .0731
	if sum := got.Upright.Sum(Upright{Norm: norm / unit, Doubt: doubt, Eyes: .3, EyesBelow: -.1, Odds: 7.6}); sum != norm/unit-2.8*doubt {
		t.Errorf("an upright face has %v, want %v", sum, norm/unit-2.8*doubt)
	}
	want3 := -3 * doubt
	want3 += 2.7 * (norm/unit - 1.39)
	if rest := got.Face.Rest(norm/unit, doubt); rest != want3 {
		t.Errorf("the rest is %v, want %v", rest, want3)
	}
}

// Without a least norm the scale of the norm is not known, so that nothing depends on the norm.
func TestEvidenceWithoutLeastNormIgnoresNorm(t *testing.T) {
	t.Parallel()
	m := parsed(t, Default())
	m.Detector.MinNorm = 0
	e := m.Evidence()
	one := Upright{Norm: 1, Doubt: .04, Eyes: .32, EyesBelow: -.09, Odds: 7.6}
	other := one
	other.Norm = 500
	if e.Upright.Sum(one) != e.Upright.Sum(other) || e.Face.Rest(1, .04) != e.Face.Rest(500, .04) {
		t.Errorf("the norm counts: %+v", e)
	}
	upsideDown := Upright{Norm: 1, Doubt: .26, Eyes: .25, EyesBelow: -.18, Odds: 5.8}
	if e.Upright.Sum(one) < e.Upright.Least || e.Upright.Sum(upsideDown) >= e.Upright.Least {
		t.Errorf("an upright face has %v, one upside down %v, the least is %v", e.Upright.Sum(one), e.Upright.Sum(upsideDown), e.Upright.Least)
	}
}

func TestParseNamesInvalidEvidence(t *testing.T) {
	t.Parallel()
	with := func(t testing.TB, change func(e object)) []byte {
		t.Helper()
		return changed(t, func(m object) {
			e := object{"normUnit": 2, "data": "none", "face": object{}, "upright": object{}}
			for part, names := range map[string]string{
				"face": "norm normUsual doubt sure even slope", "upright": "norm doubt eyes eyesBelow odds least",
			} {
				for name := range strings.FieldsSeq(names) {
					e[part].(object)[name] = 1
				}
			}
			change(e)
			m["evidence"] = e
		})
	}
	good := with(t, func(object) {})
	parsed(t, good)
	if err := valid(t, compiledSchema(t), good); err != nil {
		t.Errorf("by the schema valid evidence is not: %v", err)
	}
	f, _ := refusals(t, with)
	f("normUnit 0", func(e object) { e["normUnit"] = 0 })
	f("normUnit 2e+06", func(e object) { e["normUnit"] = 2e6 })
	f("slope 0", func(e object) { e["face"].(object)["slope"] = 0 })
	f("slope 0", func(e object) { delete(e["face"].(object), "slope") })
	f("face: norm -1e+09", func(e object) { e["face"].(object)["norm"] = -1e9 })
	f("face: sure 1e+07", func(e object) { e["face"].(object)["sure"] = 1e7 })
	f("upright: eyesBelow 1e+07", func(e object) { e["upright"].(object)["eyesBelow"] = 1e7 })
	f("upright: least 1e+07", func(e object) { e["upright"].(object)["least"] = 1e7 })
	f("colour", func(e object) { e["colour"] = 1 })
	f("evidence: data", func(e object) { e["data"] = "" })
}
