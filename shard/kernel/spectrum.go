package kernel

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
)

// spectrumSlack is how far the sum of a spectrum may be from 1: manifests round the shares.
const spectrumSlack = .01

// ErrSpectrum is returned for numbers that are no spectrum, or that are set after the first matrix.
var ErrSpectrum = errors.New("kernel: spectrum can't be used")

// codings has the coding of each dimension, which all matrices of an arena share.
type codings struct {
	mu       sync.Mutex
	spectrum []float64
	of       map[int]*coding
}

// Suit optimises the arena's matrices for templates with a spectrum: the usual share of the squared
// norm that each number has. It changes the speed of searches, no answer. Matrices of another
// dimension keep the plain coding, as without Suit. Call it before the first matrix; errors wrap
// ErrSpectrum.
func (a *Arena) Suit(spectrum []float64) error {
	sum := 0.
	for i, share := range spectrum {
		if !(share >= 0 && share <= 1+spectrumSlack) {
			return fmt.Errorf("%w: number %d has the share %v", ErrSpectrum, i, share)
		}
		sum += share
	}
	if !(math.Abs(sum-1) <= spectrumSlack) {
		return fmt.Errorf("%w: the shares are %v together, not 1", ErrSpectrum, sum)
	}
	c := &a.codings
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.of) > 0 {
		return fmt.Errorf("%w: a matrix has been made", ErrSpectrum)
	}
	c.spectrum = slices.Clone(spectrum)
	return nil
}

// coding returns the one coding of a shape.
func (c *codings) coding(s *shape) *coding {
	c.mu.Lock()
	defer c.mu.Unlock()
	if made := c.of[s.dim]; made != nil {
		return made
	}
	made := plainCoding(s)
	if len(c.spectrum) == s.dim && s.dim >= suitDim {
		made = suitedCoding(s, c.spectrum)
	}
	if c.of == nil {
		c.of = make(map[int]*coding)
	}
	c.of[s.dim] = made
	return made
}
