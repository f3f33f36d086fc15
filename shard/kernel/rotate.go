package kernel

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"sync"
)

const (
	rotateRounds = 2
	rotateSeed   = 0x6661636574
)

// rotation mixes the numbers of each part of a template by an orthogonal map, so that
// each of them looks normally distributed, whatever the spectrum of the templates
// was: then one step fits all of a part. It is made of random signs and fast Hadamard
// transforms of the first and of the last 2ⁿ numbers, in turn. The bounds hold for
// any orthogonal map, so it is neither secret nor learnt.
type rotation struct {
	ends  [3]int      // of the parts, the last of which is the rest
	signs [][]float64 // rotateRounds of all numbers
}

func newRotation(dim int, parts [2]int) *rotation {
	r := &rotation{ends: [3]int{parts[0], parts[1], dim}}
	random := rand.New(rand.NewPCG(rotateSeed, uint64(dim))) //nolint:gosec // no secret
	for range rotateRounds {
		signs := make([]float64, dim)
		for i := range signs {
			signs[i] = float64(1 - 2*int(random.Uint64()&1))
		}
		r.signs = append(r.signs, signs)
	}
	return r
}

// apply rotates y, of dim numbers, in place.
func (r *rotation) apply(y []float64) {
	for _, signs := range r.signs {
		for i, s := range signs {
			y[i] *= s
		}
		from := 0
		for _, to := range r.ends {
			mix(y[from:to])
			from = to
		}
	}
}

// mix transforms the first 2ⁿ numbers of y, and then the last.
func mix(y []float64) {
	if len(y) == 0 {
		return
	}
	width := 1 << (bits.Len(uint(len(y))) - 1)
	hadamard(y[:width])
	if width < len(y) {
		hadamard(y[len(y)-width:])
	}
}

// hadamard transforms y, of 2ⁿ numbers, orthonormally.
func hadamard(y []float64) {
	for half := 1; half < len(y); half *= 2 {
		for from := 0; from < len(y); from += 2 * half {
			a, b := y[from:from+half], y[from+half:from+2*half]
			for i, u := range a {
				v := b[i]
				a[i], b[i] = u+v, u-v
			}
		}
	}
	scale := 1 / math.Sqrt(float64(len(y)))
	for i := range y {
		y[i] *= scale
	}
}

var rotations sync.Map // of *rotation, by rotationKey

type rotationKey struct {
	dim   int
	parts [2]int
}

// rotationOf gives the one rotation of a dimension and its parts.
func rotationOf(dim int, parts [2]int) *rotation {
	key := rotationKey{dim, parts}
	if r, ok := rotations.Load(key); ok {
		return r.(*rotation) //nolint:forcetypeassert // of rotations
	}
	r, _ := rotations.LoadOrStore(key, newRotation(dim, parts))
	return r.(*rotation) //nolint:forcetypeassert // of rotations
}
