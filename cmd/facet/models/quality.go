package models

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"facet/engine/accuracy"
	"facet/engine/models"
)

// weighed are the features that a quality is fitted to. The eyes' distance belongs to a data set,
// and the frontal degree adds nothing.
var weighed = []models.Feature{
	models.FeatureNorm, models.FeatureScore, models.FeatureSharpness, models.FeatureDirectionalSharpness,
	models.FeatureIsotropy, models.FeatureFineness, models.FeatureSmear, models.FeatureContrast,
	models.FeatureBrightness, models.FeatureUnevenness, models.FeatureClipped, models.FeatureDoubt,
}

// grades are the bounds of the qualities for which the rates are told.
var grades = []float64{0, .1, .3, .45, .6, .8, .9, 1}

// qualityFit is a quality with what its test on the other half of the persons gave.
type qualityFit struct {
	*accuracy.Logistic
	faces, comparisons, persons int
	photographs                 int
	// The tests on halves of the persons that were not fitted, together.
	auc   float64
	tests int
	// reach is the share of comparisons that reach 7000 by grade, share that of the faces.
	reach, share []float64
}

// qualityCase is a case with its person.
type qualityCase struct {
	accuracy.Case
	person int
}

// fitQuality fits the probability that a comparison with another photograph of the person reaches
// the cosine of score 7000. Faces that the pack refuses are left out.
func fitQuality(s *specimens, cosine float64, f *faceFit) (*qualityFit, error) {
	var cases []qualityCase
	q := new(qualityFit)
	persons := make(map[int]bool)
	for i := range s.faces {
		face := &s.faces[i]
		if !f.isFace(&face.Sighting) {
			continue
		}
		x := make([]float64, len(weighed))
		for j, name := range weighed {
			x[j] = face.Features[name]
		}
		cases = append(cases, qualityCase{accuracy.Case{X: x, Share: face.reach(cosine), Weight: 1}, face.person})
		persons[face.person] = true
		q.comparisons += len(face.mates)
		if face.kind == asPhotographed {
			q.photographs++
		}
	}
	q.faces, q.persons = len(cases), len(persons)
	if q.faces < specimensMin {
		return nil, fmt.Errorf("fit the quality: %d faces are too few: it needs %d", q.faces, specimensMin)
	}
	var err error
	if q.Logistic, err = fitCases(cases); err != nil {
		return nil, fmt.Errorf("fit the quality: %w", err)
	}
	return q, q.test(cases, slices.Sorted(maps.Keys(persons)))
}

func fitCases(cases []qualityCase) (*accuracy.Logistic, error) {
	plain := make([]accuracy.Case, len(cases))
	for i, c := range cases {
		plain[i] = c.Case
	}
	l, err := accuracy.FitLogistic(plain)
	if err != nil {
		return nil, err
	}
	round := func(v float64) float64 { return math.Round(v*1e3) / 1e3 }
	l.Bias = round(l.Bias)
	for i := range l.Weights {
		l.Weights[i] = round(l.Weights[i])
	}
	return l, nil
}

// test fits on either half of the persons and tests on the other.
func (q *qualityFit) test(cases []qualityCase, persons []int) error {
	rand.New(rand.NewPCG(splitSeed, 1)).Shuffle(len(persons), func(i, j int) { persons[i], persons[j] = persons[j], persons[i] })
	first := make(map[int]bool)
	for _, p := range persons[:len(persons)/2] {
		first[p] = true
	}
	reach, n := make([]float64, len(grades)-1), make([]float64, len(grades)-1)
	for _, side := range []bool{true, false} {
		var from []qualityCase
		var on []accuracy.Case
		for _, c := range cases {
			if first[c.person] == side {
				from = append(from, c)
			} else {
				on = append(on, c.Case)
			}
		}
		l, err := fitCases(from)
		if err != nil {
			return fmt.Errorf("fit the quality on one half of the persons: %w", err)
		}
		q.auc += l.AUC(on) / 2
		q.tests += len(on)
		for _, c := range on {
			p := 1 / (1 + math.Exp(-l.Sum(c.X)))
			for g := range reach {
				if p >= grades[g] && (p < grades[g+1] || g == len(reach)-1) {
					reach[g] += c.Share
					n[g]++
				}
			}
		}
	}
	q.reach, q.share = make([]float64, len(reach)), make([]float64, len(reach))
	for g := range reach {
		q.reach[g], q.share[g] = reach[g]/max(1, n[g]), n[g]/float64(q.tests)
	}
	return nil
}

// quality returns the part of the manifest.
func (q *qualityFit) quality(data string) *models.Quality {
	weights := make(map[models.Feature]float64, len(weighed))
	for i, f := range weighed {
		weights[f] = q.Weights[i]
	}
	return &models.Quality{Bias: q.Bias, Weights: weights, Data: data}
}
