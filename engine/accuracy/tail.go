package accuracy

import (
	"errors"
	"fmt"
	"math"
)

// The score of a cosine says how rarely photographs of two persons are that alike. Down to a false
// match rate of TailShare it is read off the data. Below, where a few pairs would decide, it comes
// from a generalised Pareto distribution. This is fitted to the TailShare of comparisons that are
// most alike (peaks over threshold; Pickands, "Statistical inference using extreme order
// statistics", Ann. Statist. 3, 1975), by probability-weighted moments (Hosking and Wallis,
// Technometrics 29, 1987):
//
//	P(cosine > u + y | cosine > u) = (1 + shape·y/scale)^(−1/shape)
//	b0 = mean of y, b1 = mean of y·P(Y > y)
//	shape = 2 − b0/(b0 − 2·b1), scale = 2·b0·b1/(b0 − 2·b1)
//
// Each pair of persons has a total weight of 1, however many photographs they have. Otherwise
// people with many press photographs would decide the tail.

const (
	// TailShare is the share of non-mated comparisons in the tail.
	TailShare = 1e-3
	// cosineBins is the number of bins of −1 … 1, each 1.2e-4 wide.
	cosineBins = 1 << 14
	// tailBinsMin is the smallest number of non-empty bins in a tail that can be fitted.
	tailBinsMin = 20
)

// ErrTail is returned when a fit has too few comparisons.
var ErrTail = errors.New("accuracy: too few non-mated comparisons")

// Cosines is a weighted histogram of non-mated cosines.
type Cosines struct {
	weight [cosineBins]float64
	total  float64
	// Pairs is the number of comparisons.
	Pairs int64
}

// Add counts a comparison.
func (c *Cosines) Add(cosine, weight float64) {
	bin := int((cosine + 1) / 2 * cosineBins)
	c.weight[min(max(bin, 0), cosineBins-1)] += weight
	c.total += weight
	c.Pairs++
}

// NonMatedCosines compares all samples of different persons. cosine returns the similarity of two
// samples, given by their indices. Each pair of persons weighs 1.
func NonMatedCosines(samples []Sample, cosine func(a, b int) float64) *Cosines {
	photos := make(map[int]int)
	for _, s := range samples {
		if s.Acquired {
			photos[s.Person]++
		}
	}
	c := new(Cosines)
	for i, a := range samples {
		for j, b := range samples[:i] {
			if a.Acquired && b.Acquired && a.Person != b.Person {
				c.Add(cosine(i, j), 1/(float64(photos[a.Person])*float64(photos[b.Person])))
			}
		}
	}
	return c
}

func edge(bin float64) float64 { return 2*bin/cosineBins - 1 }

// upper returns the cosine above which the share of the weight lies, interpolated within a bin.
func (c *Cosines) upper(share float64) float64 {
	left := share * c.total
	for bin := cosineBins - 1; bin >= 0; bin-- {
		w := c.weight[bin]
		if w > left {
			return edge(float64(bin) + 1 - left/w)
		}
		left -= w
	}
	return -1
}

// Tail is the fitted tail.
type Tail struct {
	// Cosine is the start of the tail, u: the share TailShare of the comparisons lies above it.
	Cosine float64 `json:"cosine"`
	// Shape below 0 means that the tail ends at Cosine − Scale/Shape.
	Shape float64 `json:"shape"`
	Scale float64 `json:"scale"`
}

// Tail fits the tail. Errors wrap ErrTail.
func (c *Cosines) Tail() (Tail, error) {
	u := c.upper(TailShare)
	first := int((u + 1) / 2 * cosineBins)
	var all, b0, b1 float64
	bins := 0
	for bin := cosineBins - 1; bin >= first; bin-- {
		w := c.weight[bin]
		if bin == first { // its part above u
			w *= (edge(float64(bin+1)) - u) / (edge(1) - edge(0))
		}
		if w == 0 {
			continue
		}
		y := (max(edge(float64(bin)), u)+edge(float64(bin+1)))/2 - u
		bins++
		b0 += w * y
		b1 += w * y * (all + w/2)
		all += w
	}
	if bins < tailBinsMin {
		return Tail{}, fmt.Errorf("%w: the tail holds %d different cosines, want %d or more", ErrTail, bins, tailBinsMin)
	}
	b0, b1 = b0/all, b1/(all*all)
	if !(b0 > 2*b1) { // a shape of 1 or more: it has no mean
		return Tail{}, fmt.Errorf("%w: the tail is too heavy to be fitted", ErrTail)
	}
	return Tail{Cosine: u, Shape: 2 - b0/(b0-2*b1), Scale: 2 * b0 * b1 / (b0 - 2*b1)}, nil
}

// CosineAt returns the cosine with the false match rate fmr, at most TailShare.
func (t Tail) CosineAt(fmr float64) float64 {
	times := TailShare / fmr
	if math.Abs(t.Shape) < 1e-9 { // the limit is the exponential distribution
		return t.Cosine + t.Scale*math.Log(times)
	}
	return t.Cosine + t.Scale/t.Shape*(math.Pow(times, t.Shape)-1)
}

// CosinesAt returns the cosines of false match rates: counted down to TailShare, and from the
// fitted tail below. Errors wrap ErrTail.
func (c *Cosines) CosinesAt(rates []float64) ([]float64, Tail, error) {
	tail, err := c.Tail()
	if err != nil {
		return nil, Tail{}, err
	}
	at := make([]float64, len(rates))
	for i, fmr := range rates {
		if fmr >= TailShare {
			at[i] = c.upper(fmr)
		} else {
			at[i] = tail.CosineAt(fmr)
		}
	}
	return at, tail, nil
}
