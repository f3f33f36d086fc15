package accuracy

import (
	"math"
	"slices"
)

// Rate is a share of events among trials.
type Rate struct {
	Value float64 `json:"value"`
	// Events and Trials are the counts. Both are 0 for a rate that is no plain share, such as an
	// EER or a mean over persons.
	Events int64 `json:"events,omitzero"`
	Trials int64 `json:"trials,omitzero"`
	// Interval is nil if there is none.
	Interval *Interval `json:"interval95,omitempty"`
}

// Interval is a 95 % interval.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// z95 is the normal deviate of a two-sided 95 % interval.
const z95 = 1.959963984540054

// Share returns the rate of events among trials, without interval; 0 without trials.
func Share(events, trials int64) Rate {
	return Rate{Value: float64(events) / float64(max(trials, 1)), Events: events, Trials: trials}
}

// Wilson returns the 95 % score interval (Wilson 1927) of events among independent trials; 0 to 1
// without trials.
func Wilson(events, trials int64) Interval {
	return wilson(float64(events)/float64(max(trials, 1)), float64(trials))
}

// wilson is Wilson for the share p of n trials.
func wilson(p, n float64) Interval {
	if n <= 0 {
		return Interval{0, 1}
	}
	middle := (p + z95*z95/(2*n)) / (1 + z95*z95/n)
	half := z95 / (1 + z95*z95/n) * math.Sqrt(p*(1-p)/n+z95*z95/(4*n*n))
	in := Interval{max(0, middle-half), min(1, middle+half)}
	if p <= 0 {
		in.Low = 0 // removes a rounding error
	}
	if p >= 1 {
		in.High = 1
	}
	return in
}

// percentiles returns the middle 95 % of values, which it sorts. It returns nil if there are none
// or one is NaN.
func percentiles(values []float64) *Interval {
	slices.Sort(values) // NaN come first
	if len(values) == 0 || math.IsNaN(values[0]) {
		return nil
	}
	at := func(share float64) float64 {
		x := share * float64(len(values)-1)
		i := int(x)
		j := min(i+1, len(values)-1)
		return values[i] + (x-float64(i))*(values[j]-values[i])
	}
	return &Interval{at(.025), at(.975)}
}

// widen returns the rate with the wider of two intervals: that of the resampled values, and that of
// independent trials. Resampling alone shows no uncertainty about an event that never happened.
func (r Rate) widen(values []float64, trials int64) Rate {
	r.Interval = percentiles(values)
	if r.Interval != nil {
		w := wilson(r.Value, float64(trials))
		r.Interval.Low = min(r.Interval.Low, w.Low)
		r.Interval.High = max(r.Interval.High, w.High)
	}
	return r
}

// Deviate returns the normal deviate of a rate, the scale of a DET plot's axes: −∞ for 0, 0 for
// one half, +∞ for 1.
func Deviate(rate float64) float64 { return math.Sqrt2 * math.Erfinv(2*rate-1) }
