package machine

import (
	"fmt"
	"slices"
	"time"
)

// Sample holds measurements of one thing.
type Sample []time.Duration

// MS returns the quantile q, 0 to 1, in milliseconds; 0 of none.
func (s Sample) MS(q float64) float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)].Seconds() * 1e3
}

// MeanMS is the mean in milliseconds; 0 of none.
func (s Sample) MeanMS() float64 {
	var sum time.Duration
	for _, d := range s {
		sum += d
	}
	return sum.Seconds() * 1e3 / float64(max(len(s), 1))
}

// Times returns a sample's quantiles as text.
func (s Sample) Times() string {
	return fmt.Sprintf("p50 %.1f, p99 %.1f, max %.1f ms of %d", s.MS(.5), s.MS(.99), s.MS(1), len(s))
}

// Time measures do.
func (s *Sample) Time(do func() error) error {
	start := time.Now()
	err := do()
	*s = append(*s, time.Since(start))
	return err
}

// Tail is p99 / p50.
func (s Sample) Tail() float64 { return s.MS(.99) / s.MS(.5) }
