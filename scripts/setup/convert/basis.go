package convert

import (
	"errors"
	"fmt"
	"math"

	"facet/internal/svd"
)

// dependent is the least length of a unit vector's rest after its projections on
// the other vectors are subtracted. A shorter rest counts as rounding noise.
const dependent = 1e-6

var errRank = errors.New("last layer's rank is less than the wanted dimension")

// layer is a fully connected layer: out = w·in + bias, w row-major rows × cols.
type layer struct {
	rows, cols int
	w, bias    []float32
}

// basis returns dim orthonormal vectors, row after row. They span the layer's
// bias and its first dim−1 left singular vectors. First come the singular vectors
// by falling singular value, then the part of the bias that is orthogonal to
// them. basis rounds the rows to float32; everything later is computed from the
// rounded numbers.
func (l *layer) basis(dim int) ([]float32, error) {
	cols := make([][]float64, l.cols)
	for j := range cols {
		cols[j] = make([]float64, l.rows)
		for i := range cols[j] {
			cols[j][i] = float64(l.w[i*l.cols+j])
		}
	}
	u, _, err := svd.Left(cols)
	if err != nil {
		return nil, err
	}
	if len(u) < dim-1 {
		return nil, fmt.Errorf("%w: %d, %d needed", errRank, len(u), dim-1)
	}
	last := make([]float64, l.rows)
	for i, b := range l.bias {
		last[i] = float64(b)
	}
	u = u[:dim-1]
	if !complement(last, u) {
		return nil, fmt.Errorf("%w: the bias adds nothing to the first %d singular vectors", errRank, dim-1)
	}
	out := make([]float32, 0, dim*l.rows)
	for _, v := range append(u[:dim-1:dim-1], last) {
		for _, x := range v {
			out = append(out, float32(x))
		}
	}
	return out, nil
}

// complement subtracts from v its projections on the orthonormal vectors of u,
// and scales the rest to length 1. It does so twice, which is enough for full
// orthogonality (Kahan, in Parlett 1980, §6.9). It returns false if nothing is
// left.
func complement(v []float64, u [][]float64) bool {
	if !normalise(v, 0) {
		return false
	}
	for range 2 {
		for _, b := range u {
			p := svd.Dot(v, b)
			for i := range v {
				v[i] -= float64(p * b[i])
			}
		}
		if !normalise(v, dependent) {
			return false
		}
	}
	return true
}

// normalise scales v to length 1. It returns false if v is not longer than least.
func normalise(v []float64, least float64) bool {
	n := math.Sqrt(svd.Dot(v, v))
	if !(n > least) || math.IsInf(n, 0) {
		return false
	}
	for i := range v {
		v[i] /= n
	}
	return true
}

// project returns the layer whose outputs are the coordinates of l's outputs in
// the basis (rows of length l.rows), computed in float64 and rounded once.
func (l *layer) project(basis []float32) layer {
	dim := len(basis) / l.rows
	p := layer{rows: dim, cols: l.cols, w: make([]float32, dim*l.cols), bias: make([]float32, dim)}
	sum := make([]float64, l.cols)
	for r := range dim {
		clear(sum)
		bias := 0.0
		for i, b := range basis[r*l.rows : (r+1)*l.rows] {
			x := float64(b)
			bias += float64(x * float64(l.bias[i]))
			for j, w := range l.w[i*l.cols : (i+1)*l.cols] {
				sum[j] += float64(x * float64(w))
			}
		}
		p.bias[r] = float32(bias)
		for j, s := range sum {
			p.w[r*l.cols+j] = float32(s)
		}
	}
	return p
}
