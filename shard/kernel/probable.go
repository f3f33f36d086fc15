package kernel

import (
	"errors"
	"fmt"
	"math"
)

const (
	// missMost is the largest share of hits that a probable bound may lose.
	missMost = .1
	// sphereSteps is into how many pieces the tail of a sphere is cut, and sphereSlack what that
	// may be wrong, relatively.
	sphereSteps, sphereSlack = 1 << 12, 1e-4
)

// ErrProbable is returned for a probability that no bound can have, or that is set too late.
var ErrProbable = errors.New("kernel: probable bound can't be used")

// Probable has the arena's matrices take bounds that lose a hit with a probability of at
// most miss, more than 0 and at most .1, each time that a search should find it. The bounds are
// sharper, so that searches are faster; doc.go says what they take for granted. Every template
// takes longer to add: its rotation is a product with a matrix. A spectrum is of no use then.
// Probable comes before the first matrix; errors wrap ErrProbable.
func (a *Arena) Probable(miss float64) error {
	if !(miss > 0 && miss <= missMost) {
		return fmt.Errorf("%w: it is to lose a share of %v", ErrProbable, miss)
	}
	c := &a.codings
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.of) > 0 {
		return fmt.Errorf("%w: a matrix has been made", ErrProbable)
	}
	c.miss = miss
	return nil
}

// probableCoding is the coding for bounds that lose a hit with the probability miss, of which
// each plane has its part: a hit is lost if one of them excludes it.
func probableCoding(s *shape, miss float64, seed [seedBytes]byte) *coding {
	c := plainCoding(s)
	c.rotation = &rotation{haar: newHaar(s.dim, seed)}
	c.kappa = sphereTail(s.dim, miss/planes)
	if s.dim >= wideDim {
		c.withSigns(s)
	}
	return c
}

// sphereTail returns the k for which the inner product of a fixed unit vector and a random one, both
// orthogonal to a third one of dim numbers, is below −k with the probability miss: a tail of the
// sphere in dim − 1 dimensions.
func sphereTail(dim int, miss float64) float64 {
	n := dim - 1
	if n < 2 {
		return 1 // it is 1 or −1
	}
	// The angle between both has the density sinⁿ⁻² (Simpson's rule).
	integral := func(to float64) (sum float64) {
		h := to / sphereSteps
		for i := range sphereSteps + 1 {
			weight := float64(2 + 2*(i%2))
			if i == 0 || i == sphereSteps {
				weight = 1
			}
			sum += weight * math.Pow(math.Sin(float64(i)*h), float64(n-2))
		}
		return sum * h / 3
	}
	all := 2 * integral(math.Pi/2)
	low, high := 0., math.Pi/2
	for range 50 {
		if at := (low + high) / 2; integral(at) > miss*(1-sphereSlack)*all {
			high = at
		} else {
			low = at
		}
	}
	return math.Cos(low)
}
