package models

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"facet/engine"
	"facet/engine/accuracy"
	"facet/engine/models"
)

const (
	// likenessLeast is the least likeness of a face that the engine reports.
	likenessLeast = .5
	// wrongWayMost is the share of detections of the wrong way up that may count as upright.
	wrongWayMost = 1e-3
	// unsureLeast is the share of the photographs' faces that need not count as upright at once. A
	// face that is aslant is then turned, too.
	unsureLeast = .01
	// uncomparable is the probability to reach 7000 at the least norm: a face of less norm is
	// refused. The least norm refuses at most refusedMost of the photographs as they are.
	uncomparable = .02
	refusedMost  = 1e-3
	// normTells is the least AUC of a norm that tells which faces can be compared.
	normTells = .6
)

// faceFit are the parts of a manifest that are fitted to specimens.
type faceFit struct {
	evidence models.Evidence
	minNorm  float64
	// shape is the uprightness without the norm.
	shape models.UprightEvidence
	// upright and byShape are the shares of the photographs' faces that count as upright at once.
	upright, byShape float64
	// normAUC is how well the norm tells which faces can be compared, refused the share of the
	// photographs' faces below the least norm.
	normAUC, refused float64
	// Shares of detections that count as faces: of the photographs, of the spoilt copies and of
	// those whose blocks are shuffled.
	found, foundCopies, foundShuffled float64
}

// fitFaces fits the evidence and the least norm. cosine is that of score 7000.
func fitFaces(s *specimens, cosine float64) (*faceFit, error) {
	if n := s.photographs(); n < specimensMin || len(s.turned) < specimensMin {
		return nil, fmt.Errorf("%d faces and %d detections of the wrong way up are too few to fit the evidence: it needs %d of each", n, len(s.turned), specimensMin)
	}
	f := new(faceFit)
	var norms []float64
	for _, face := range s.faces {
		if face.kind == asPhotographed {
			norms = append(norms, face.Norm)
		}
	}
	if err := f.fitMinNorm(s, cosine, norms); err != nil {
		return nil, fmt.Errorf("fit the least norm: %w", err)
	}
	// The detector and the landmarks decide the weights for a face. The embedder has its part in the
	// unit of the norm.
	f.evidence.NormUnit, f.evidence.Face = f.minNorm, models.UsualFace()
	if f.minNorm == 0 {
		f.evidence.NormUnit, f.evidence.Face.Norm = rounded(quantile(norms, .5)), 0
	}
	if err := f.fitUpright(s); err != nil {
		return nil, fmt.Errorf("fit the evidence for an upright face: %w", err)
	}
	f.rateFaces(s)
	return f, nil
}

// fitMinNorm sets the norm below which a face hardly ever reaches 7000, 0 if the norm does not tell.
func (f *faceFit) fitMinNorm(s *specimens, cosine float64, norms []float64) error {
	var cases []accuracy.Case
	for i := range s.faces {
		cases = append(cases, accuracy.Case{X: []float64{s.faces[i].Norm}, Share: s.faces[i].reach(cosine), Weight: 1})
	}
	l, err := accuracy.FitLogistic(cases)
	if err != nil {
		return err
	}
	if f.normAUC = l.AUC(cases); !(f.normAUC >= normTells && l.Weights[0] > 0) {
		return nil
	}
	least := (math.Log(uncomparable/(1-uncomparable)) - l.Bias) / l.Weights[0]
	f.minNorm = rounded(max(0, min(least, quantile(norms, refusedMost))))
	below := 0
	for _, n := range norms {
		if n < f.minNorm {
			below++
		}
	}
	f.refused = float64(below) / float64(len(norms))
	return nil
}

// fitUpright fits the evidence that a face is upright, with the norm and without.
func (f *faceFit) fitUpright(s *specimens) error {
	measures := func(m models.Upright, norm float64) []float64 {
		return []float64{m.Doubt, m.Eyes, m.EyesBelow, m.Odds, norm / f.evidence.NormUnit}
	}
	var right, wrong [][]float64
	for _, face := range s.faces {
		if face.kind == asPhotographed {
			right = append(right, measures(face.Upright, face.Norm))
		}
	}
	for _, t := range s.turned {
		wrong = append(wrong, measures(t.Upright, t.Norm))
	}
	var err error
	f.evidence.Upright, f.upright, err = uprightOf(right, wrong)
	if err != nil {
		return err
	}
	for _, side := range [][][]float64{right, wrong} {
		for i := range side {
			side[i] = side[i][:4]
		}
	}
	f.shape, f.byShape, err = uprightOf(right, wrong)
	return err
}

// uprightOf fits the weights of doubt, eyes' distance and place, odds and, if it is there, norm. It
// returns the share of the right ones that reach the least sum, too.
func uprightOf(right, wrong [][]float64) (models.UprightEvidence, float64, error) {
	l, err := accuracy.FitLogistic(slices.Concat(casesOf(right, 1, .5), casesOf(wrong, 0, .5)))
	if err != nil {
		return models.UprightEvidence{}, 0, err
	}
	w := make([]float64, 5)
	copy(w, l.Weights)
	for i := range w {
		w[i] = rounded(w[i])
	}
	u := models.UprightEvidence{Doubt: w[0], Eyes: w[1], EyesBelow: w[2], Odds: w[3], Norm: w[4]}
	sum := func(x []float64) float64 {
		m := models.Upright{Doubt: x[0], Eyes: x[1], EyesBelow: x[2], Odds: x[3]}
		if len(x) > 4 {
			m.Norm = x[4]
		}
		return u.Sum(m)
	}
	sums := func(list [][]float64) (all []float64) {
		for _, x := range list {
			all = append(all, sum(x))
		}
		return all
	}
	rights := sums(right)
	u.Least = rounded(max(quantile(sums(wrong), 1-wrongWayMost), quantile(rights, unsureLeast)))
	n := 0
	for _, v := range rights {
		if v >= u.Least {
			n++
		}
	}
	return u, float64(n) / float64(len(rights)), nil
}

// rateFaces sets the shares of detections that count as faces.
func (f *faceFit) rateFaces(s *specimens) {
	var photographs, copies []engine.Sighting
	for _, face := range s.faces {
		if face.kind == asPhotographed {
			photographs = append(photographs, face.Sighting)
		} else {
			copies = append(copies, face.Sighting)
		}
	}
	share := func(list []engine.Sighting) float64 {
		n := 0
		for i := range list {
			if f.isFace(&list[i]) {
				n++
			}
		}
		return float64(n) / float64(max(1, len(list)))
	}
	f.found, f.foundCopies, f.foundShuffled = share(photographs), share(copies), share(s.shuffled)
}

// isFace reports whether the engine reports the detection.
func (f *faceFit) isFace(s *engine.Sighting) bool {
	return s.Norm >= f.minNorm && s.Judge(&f.evidence) >= likenessLeast
}

// casesOf returns cases of equal weight, which is weight together.
func casesOf(list [][]float64, share, weight float64) []accuracy.Case {
	cases := make([]accuracy.Case, len(list))
	for i, x := range list {
		cases[i] = accuracy.Case{X: x, Share: share, Weight: weight / float64(len(list))}
	}
	return cases
}

// rounded rounds to three significant digits.
func rounded(v float64) float64 {
	short, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64) // of a number of ours
	return short
}

// quantile returns the value below which the share of the values lies.
func quantile(values []float64, share float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)]
}
