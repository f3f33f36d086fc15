package kernel

import (
	crypto "crypto/rand"
	"math"
	"math/rand/v2"
	"sync"

	"facet/internal/stale"
)

const seedBytes = 32

// haar is a random orthogonal matrix, all of which are equally probable. It turns the part of a
// probe that is orthogonal to a template into any direction with equal probability, whatever both
// are. No such theorem is known for products of a few fast transforms.
type haar struct {
	dim int
	// rows have stride numbers each, padded with zeros. As float32 they fit a processor's second
	// cache at 512 numbers. Rounding them moves the images of unit vectors by at most 2⁻²⁴ ·
	// √dim, 2e-6, which roundSlack covers.
	rows    []float32
	stride  int
	scratch sync.Pool // of *[]float64 of stride numbers, zeros
}

// secretSeed returns a seed that nobody knows.
func secretSeed() (seed [seedBytes]byte) {
	_, _ = crypto.Read(seed[:]) // never fails
	return seed
}

// newHaar draws rows of normal numbers, which prefer no direction, and makes them orthonormal one
// after the other.
func newHaar(dim int, seed [seedBytes]byte) *haar {
	h := &haar{dim: dim, stride: (dim + coderNums - 1) / coderNums * coderNums}
	h.rows = make([]float32, dim*h.stride)
	h.scratch.New = func() any { return new(make([]float64, h.stride)) }
	random := rand.New(rand.NewChaCha8(seed)) //nolint:gosec // a cipher, of a secret seed
	done := make([][]float64, 0, dim)
	for i := range dim {
		row := make([]float64, dim)
		for j := range row {
			row[j] = random.NormFloat64()
		}
		for range 2 { // a second time removes rounding errors
			for _, other := range done {
				dot := 0.
				for j, x := range other {
					dot += x * row[j]
				}
				for j, x := range other {
					row[j] -= dot * x
				}
			}
		}
		square := 0.
		for _, x := range row {
			square += x * x
		}
		for j := range row {
			row[j] /= math.Sqrt(square)
			h.rows[i*h.stride+j] = float32(row[j])
		}
		done = append(done, row)
	}
	return h
}

func (h *haar) apply(k *coder, y []float64) {
	from := h.room()
	copy(*from, y)
	h.turn(k, y, from)
}

// applyTo rotates v · scale into y.
func (h *haar) applyTo(k *coder, y []float64, v []float32, scale float64) {
	from := h.room()
	for i, x := range v {
		(*from)[i] = float64(x) * scale
	}
	h.turn(k, y, from)
}

// room returns memory for a probe. The numbers beyond the probe's dimension are zero.
func (h *haar) room() *[]float64 {
	from := h.scratch.Get().(*[]float64) //nolint:forcetypeassert // of scratch
	stale.Fill((*from)[:h.dim])
	return from
}

func (h *haar) turn(k *coder, y []float64, from *[]float64) {
	k.products(y, h.rows, *from)
	clear(*from) // leaves no template behind
	h.scratch.Put(from)
}
