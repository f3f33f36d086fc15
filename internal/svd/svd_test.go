package svd

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"facet/internal/must"
)

// They are orthonormal and diagonalise the matrix.
func TestLeftVectorsDiagonalise(t *testing.T) {
	t.Parallel()
	f := func(rows, cols, rank int, decay float64) {
		t.Helper()
		a := lowRank(rand.New(rand.NewPCG(uint64(rows), uint64(cols))), rows, cols, rank, decay)
		u, values, err := Left(clone(a))
		must.Do(t, err)
		if len(u) != rank || len(values) != rank {
			t.Fatalf("%d × %d: %d vectors and %d values, want %d", rows, cols, len(u), len(values), rank)
		}
		if !slices.IsSortedFunc(values, func(x, y float64) int { return int(math.Copysign(1, y-x)) }) {
			t.Errorf("values do not fall: %v", values)
		}
		for i := range u {
			for j := range u[:i+1] {
				want := 0.0
				if i == j {
					want = 1
				}
				if got := Dot(u[i], u[j]); math.Abs(got-want) > 1e-12 {
					t.Errorf("%d × %d: inner product of %d and %d is %g, want %g", rows, cols, i, j, got, want)
				}
			}
			// A·Aᵀ·u = σ²·u
			v := gram(a, u[i])
			for k := range v {
				v[k] -= values[i] * values[i] * u[i][k]
			}
			if rest := math.Sqrt(Dot(v, v)); rest > 1e-12*values[0]*values[0] {
				t.Errorf("%d × %d: vector %d misses A·Aᵀ·u = σ²·u by %g", rows, cols, i, rest)
			}
		}
	}
	f(1, 1, 1, 1)
	f(5, 5, 5, 1)
	f(7, 3, 3, 1)
	f(3, 7, 3, 1)
	f(40, 40, 25, .7)
	f(64, 80, 64, .9)
}

// The largest element of each vector is positive.
func TestLeftVectorsHaveFixedSigns(t *testing.T) {
	t.Parallel()
	a := lowRank(rand.New(rand.NewPCG(5, 6)), 20, 20, 20, .9)
	u, _, err := Left(a)
	must.Do(t, err)
	for i, v := range u {
		if hi, lo := slices.Max(v), slices.Min(v); hi < -lo {
			t.Errorf("vector %d has elements from %g to %g", i, lo, hi)
		}
	}
}

// An empty matrix has no vectors.
func TestLeftRefusesNaN(t *testing.T) {
	t.Parallel()
	if u, _, err := Left([][]float64{{0, 0}, {0, 0}}); err != nil || len(u) != 0 {
		t.Errorf("zero matrix: %v, %v; want no vectors", u, err)
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1), 1e200} {
		if _, _, err := Left([][]float64{{1, bad}, {0, 1}}); err == nil {
			t.Errorf("matrix with %g: no error", bad)
		}
	}
}

// TestLeftHasFixedBits pins the bits of one result:
// the value was made on amd64, and other processors must agree.
func TestLeftHasFixedBits(t *testing.T) {
	t.Parallel()
	// Integers from a PCG, so that nothing but Left computes with floats.
	rng := rand.New(rand.NewPCG(7, 8))
	a := make([][]float64, 48)
	for i := range a {
		a[i] = make([]float64, 40)
		for j := range a[i] {
			a[i][j] = float64(rng.IntN(2001)-1000) / 1024
		}
	}
	u, values, err := Left(a)
	must.Do(t, err)
	h := sha256.New()
	for _, v := range append(u, values) {
		for _, x := range v {
			h.Write(binary.LittleEndian.AppendUint64(nil, math.Float64bits(x)))
		}
	}
	const want = "1ce0212fd8625fae60992895498c3632002b1e18900927650cffa1ec1953925c"
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		t.Errorf("SHA-256 of the bits is %s, want %s", got, want)
	}
}

// lowRank is a random matrix as columns: a sum of rank products of random vectors, each decay times
// the one before.
func lowRank(rng *rand.Rand, rows, cols, rank int, decay float64) [][]float64 {
	a := make([][]float64, cols)
	for j := range a {
		a[j] = make([]float64, rows)
	}
	scale := 1.0
	for range rank {
		x := make([]float64, rows)
		for i := range x {
			x[i] = rng.NormFloat64()
		}
		for j := range a {
			y := scale * rng.NormFloat64()
			for i := range x {
				a[j][i] += y * x[i]
			}
		}
		scale *= decay
	}
	return a
}

// gram is A·Aᵀ·x = Σ (column · x) column, of a matrix given by columns.
func gram(cols [][]float64, x []float64) []float64 {
	out := make([]float64, len(x))
	for _, c := range cols {
		p := Dot(c, x)
		for i := range out {
			out[i] += p * c[i]
		}
	}
	return out
}

func clone(a [][]float64) [][]float64 {
	out := make([][]float64, len(a))
	for i := range a {
		out[i] = slices.Clone(a[i])
	}
	return out
}
