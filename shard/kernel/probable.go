package kernel

import (
	"errors"
	"fmt"
	"math"
)

const (
	// missMost is the largest share of hits that probable bounds may lose.
	missMost = .1
	// sphereSteps is how many pieces the integral of a sphere's tail has, and sphereSlack its
	// largest relative error.
	sphereSteps, sphereSlack = 1 << 12, 1e-4
)

// ErrProbable is returned for an unusable probability, or one that is set after the first matrix.
var ErrProbable = errors.New("kernel: probable bound can't be used")

// Probable makes the bounds of the arena's matrices probable: each hit is lost with a probability
// of at most miss, more than 0 and at most .1. doc.go states the conditions. The bounds are
// sharper, so searches are faster. Adding a template takes longer, because its rotation is a
// product with a matrix. A spectrum has no effect then.
//
// Call Probable before the first matrix; errors wrap ErrProbable.
func (a *Arena) Probable(miss float64) error {
	if !(miss > 0 && miss <= missMost) {
		return fmt.Errorf("%w: a share of %v can't be lost", ErrProbable, miss)
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

// probableCoding returns the coding whose bounds lose a hit with the probability miss. Each plane
// gets its part, because either may lose the hit.
func probableCoding(s *shape, miss float64, seed [seedBytes]byte) *coding {
	c := plainCoding(s)
	c.rotation = &rotation{haar: newHaar(s.dim, seed)}
	c.kappa = sphereTail(s.dim, miss/planes)
	if s.dim >= wideDim {
		c.withSigns(s)
	}
	return c
}

// sphereTail returns the k for which g is below −k with the probability miss. g is the inner
// product of a fixed unit vector and a random one, both orthogonal to a third vector of dim
// numbers. This is a tail of the sphere in dim − 1 dimensions.
func sphereTail(dim int, miss float64) float64 {
	n := dim - 1
	if n < 2 {
		return 1 // g is 1 or −1
	}
	// The angle between both vectors has the density sinⁿ⁻² (Simpson's rule).
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
