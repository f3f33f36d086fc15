// Package svd computes the left singular vectors of a matrix, with the same bits on every machine.
package svd

import (
	"cmp"
	"errors"
	"math"
	"slices"
)

// One-sided Jacobi (Hestenes 1958; Demmel & Veselić 1992) rotates the columns of
// A in pairs until all are orthogonal. Then A·V = U·Σ: the columns' lengths are
// the singular values and their directions the left singular vectors. The method
// is short and accurate to the last digits. It needs nothing but + − × ÷ √, which
// round alike on every processor.
//
// Every product in this file is written float64(x*y), because Go then forbids the
// compiler to fuse it with a sum.

const (
	// maxSweeps is the most sweeps. A matrix of 512 columns takes about ten.
	maxSweeps = 60
	// orthogonal is the cosine under which two columns count as orthogonal.
	orthogonal = 0x1p-47
	// negligible is the length, relative to the whole matrix, under which a
	// column counts as zero: it is rounding noise.
	negligible = 0x1p-50
)

// ErrDiverges is returned for a matrix whose numbers are not finite or too large.
var ErrDiverges = errors.New("singular value decomposition does not converge")

// Left returns the left singular vectors of the matrix with these
// columns, as unit vectors by falling singular value, and the singular values. It
// leaves out zero singular values and their vectors. The largest element of a
// vector (the first of equals) is positive. Left overwrites cols.
func Left(cols [][]float64) ([][]float64, []float64, error) {
	norms := make([]float64, len(cols)) // squared
	total := 0.0
	for i, c := range cols {
		norms[i] = Dot(c, c)
		total += norms[i]
	}
	if math.IsNaN(total) || math.IsInf(total, 0) {
		return nil, nil, ErrDiverges
	}
	floor := float64(float64(negligible*negligible) * total)
	sortColumns(cols, norms) // long columns first: fewer sweeps (de Rijk 1989)
	for sweep := 0; rotateAll(cols, norms, floor); sweep++ {
		if sweep == maxSweeps {
			return nil, nil, ErrDiverges
		}
	}
	sortColumns(cols, norms)
	var values []float64
	for i, c := range cols {
		if norms[i] <= floor {
			return cols[:i], values, nil
		}
		s := math.Sqrt(norms[i])
		values = append(values, s)
		for j := range c {
			c[j] /= s
		}
		fixSign(c)
	}
	return cols, values, nil
}

// rotateAll makes one sweep over all pairs and reports whether it rotated any.
func rotateAll(cols [][]float64, norms []float64, floor float64) bool {
	rotated := false
	for p := range cols {
		for q := p + 1; q < len(cols); q++ {
			a, b := norms[p], norms[q]
			if a <= floor || b <= floor {
				continue
			}
			g := Dot(cols[p], cols[q])
			if math.Abs(g) <= float64(orthogonal*float64(math.Sqrt(a)*math.Sqrt(b))) {
				continue
			}
			rotated = true
			zeta := (b - a) / float64(2*g)
			t := 1 / (math.Abs(zeta) + math.Sqrt(1+float64(zeta*zeta)))
			if zeta < 0 {
				t = -t
			}
			c := 1 / math.Sqrt(1+float64(t*t))
			rotate(cols[p], cols[q], c, float64(c*t))
			norms[p], norms[q] = Dot(cols[p], cols[p]), Dot(cols[q], cols[q])
		}
	}
	return rotated
}

// rotate replaces x by c·x − s·y and y by s·x + c·y.
func rotate(x, y []float64, c, s float64) {
	y = y[:len(x)]
	for i, a := range x {
		b := y[i]
		x[i] = float64(c*a) - float64(s*b)
		y[i] = float64(s*a) + float64(c*b)
	}
}

// Dot returns the inner product. It adds in four interleaved sums, a fixed order.
func Dot(x, y []float64) float64 {
	var s0, s1, s2, s3 float64
	y = y[:len(x)]
	i := 0
	for ; i+4 <= len(x); i += 4 {
		s0 += float64(x[i] * y[i])
		s1 += float64(x[i+1] * y[i+1])
		s2 += float64(x[i+2] * y[i+2])
		s3 += float64(x[i+3] * y[i+3])
	}
	for ; i < len(x); i++ {
		s0 += float64(x[i] * y[i])
	}
	return (s0 + s1) + (s2 + s3)
}

// sortColumns orders columns and their squared lengths by falling length.
func sortColumns(cols [][]float64, norms []float64) {
	order := make([]int, len(cols))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(norms[j], norms[i]) })
	oldCols, oldNorms := slices.Clone(cols), slices.Clone(norms)
	for to, from := range order {
		cols[to], norms[to] = oldCols[from], oldNorms[from]
	}
}

func fixSign(v []float64) {
	top := 0.0
	for _, x := range v {
		if math.Abs(x) > math.Abs(top) {
			top = x
		}
	}
	if top < 0 {
		for i := range v {
			v[i] = -v[i]
		}
	}
}
