package machine

import (
	"fmt"
	"slices"
	"time"
)

// Sample is a list of times of one operation.
type Sample []time.Duration

// MS returns the quantile q, 0 to 1, in milliseconds. It returns 0 for an empty sample.
func (s Sample) MS(q float64) float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)].Seconds() * 1e3
}

// MeanMS returns the mean in milliseconds. It returns 0 for an empty sample.
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

// Time calls do and adds its time to the sample.
func (s *Sample) Time(do func() error) error {
	start := time.Now()
	err := do()
	*s = append(*s, time.Since(start))
	return err
}

// Tail returns p99 / p50.
func (s Sample) Tail() float64 { return s.MS(.99) / s.MS(.5) }
