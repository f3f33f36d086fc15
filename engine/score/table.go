package score

import (
	"errors"
	"fmt"
	"math"
	"sort"
)

const (
	// Max is the highest score: the same image.
	Max = 9999
	// Same is the similarity from which every score is Max.
	Same = .999

	pointsMax = 64
)

// ErrPoints is returned for calibration points that describe no usable curve.
var ErrPoints = errors.New("score: calibration points are not usable")

// Point maps a similarity of Cosine to a Score. A pack's manifest has points of the same form.
type Point struct {
	Cosine float64
	Score  int
}

// Table has the smallest similarity of each score 1 … Max, ascending. It does not change and is
// safe for concurrent use.
type Table struct {
	least [Max + 1]float32 // least[0] is −Inf
	// means has the tables of each kind of mean, or nil.
	means Means
}

// Means are tables for each kind of mean.
type Means [Kinds]*Table

// With returns t with tables for means. A kind without one has t.
func (t *Table) With(means Means) *Table {
	with := *t
	with.means = means
	return &with
}

// OfMean returns the table for means of a kind.
func (t *Table) OfMean(kind int) *Table {
	if of := t.means[kind]; of != nil {
		return of
	}
	return t
}

// NewTable returns the table of the curve that runs straight from point to point. There are at most
// 64 points. Their cosines rise strictly from −1 to 1. Their scores go from 0 to Max and never
// fall, and reach Max at Same or before. The curve must not be so steep that two scores have the
// same float32. Errors wrap ErrPoints.
//
// Only +, −, × and ÷ of float64 are used, each rounded by itself, so every processor builds the
// same table.
func NewTable(points []Point) (*Table, error) {
	if err := checkPoints(points); err != nil {
		return nil, err
	}
	t := new(Table)
	t.least[0] = float32(math.Inf(-1))
	at := 0
	for s := 1; s <= Max; s++ {
		for points[at+1].Score < s {
			at++
		}
		from, to := points[at], points[at+1] // from.Score < s ≤ to.Score
		share := float64(s-from.Score) / float64(to.Score-from.Score)
		t.least[s] = float32(from.Cosine + float64(share*float64(to.Cosine-from.Cosine)))
		if t.least[s] <= t.least[s-1] {
			return nil, fmt.Errorf("%w: scores %d and %d share a similarity", ErrPoints, s-1, s)
		}
	}
	if t.least[Max] > Same {
		return nil, fmt.Errorf("%w: score %d needs a cosine of %v, above %v", ErrPoints, Max, t.least[Max], Same)
	}
	return t, nil
}

func checkPoints(points []Point) error {
	n := len(points)
	if n < 2 || n > pointsMax {
		return fmt.Errorf("%w: %d points, want 2 to %d", ErrPoints, n, pointsMax)
	}
	first, last := points[0], points[n-1]
	if first != (Point{Cosine: -1}) || last != (Point{Cosine: 1, Score: Max}) {
		return fmt.Errorf("%w: they go from %v to %v, want from cosine −1 with score 0 to cosine 1 with score %d", ErrPoints, first, last, Max)
	}
	for i, p := range points[1:] {
		// Written so that a NaN fails.
		if !(p.Cosine > points[i].Cosine) || p.Score < points[i].Score {
			return fmt.Errorf("%w: %v after %v", ErrPoints, p, points[i])
		}
	}
	return nil
}

// Score returns the score of a similarity, 0 … Max: the highest score whose least similarity is
// not above it. NaN scores 0, and Same or more scores Max. The score never falls when the
// similarity rises.
func (t *Table) Score(similarity float32) int {
	return sort.Search(Max, func(i int) bool { return !(t.least[i+1] <= similarity) })
}

// Least returns the smallest similarity with the given score, −Inf for a score of 0 or less, +Inf
// above Max. Score(Least(s)) is s for 1 ≤ s ≤ Max, so a scan may compare similarities with
// Least(threshold) alone.
func (t *Table) Least(score int) float32 {
	switch {
	case score <= 0:
		return t.least[0]
	case score > Max:
		return float32(math.Inf(1))
	}
	return t.least[score]
}
