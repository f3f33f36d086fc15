package kernel

import (
	"math/bits"
	"math/rand/v2"
)

const (
	rotateRounds = 2
	rotateSeed   = 0x6661636574
)

// rotation mixes the numbers of each part of a template by an orthogonal map. Afterwards each of
// them looks normally distributed, whatever the spectrum, so one step fits all of a part. The map
// alternates random signs with fast Hadamard transforms of the first and the last 2ⁿ numbers. The
// bounds hold for any orthogonal map, so it is no secret.
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

func (r *rotation) apply(k *coder, y []float64) {
	for _, signs := range r.signs {
		k.flipAll(y, signs)
		r.mix(k, y)
	}
}

// applyTo rotates v · scale into y.
func (r *rotation) applyTo(k *coder, y []float64, v []float32, scale float64) {
	n := len(v) - rest(len(v))
	k.widen(y[:n], v[:n], r.signs[0][:n], scale)
	widenPortable(y[n:], v[n:], r.signs[0][n:], scale)
	r.mix(k, y)
	for _, signs := range r.signs[1:] {
		k.flipAll(y, signs)
		r.mix(k, y)
	}
}

// mix transforms the first 2ⁿ numbers of each part, and then the last 2ⁿ.
func (r *rotation) mix(k *coder, y []float64) {
	from := 0
	for _, to := range r.ends {
		if part := y[from:to]; len(part) > 0 {
			width := 1 << (bits.Len(uint(len(part))) - 1)
			k.transform(part[:width])
			if width < len(part) {
				k.transform(part[len(part)-width:])
			}
		}
		from = to
	}
}
