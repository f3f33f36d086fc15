package accuracy

import (
	"fmt"
	"math"
)

// percentMin is the smallest rate that is shown in percent.
const percentMin = .001

// String returns the rate for people, with its interval in square brackets if it has one: all in
// percent or all in powers of ten.
func (r Rate) String() string {
	in := r.Interval
	if in == nil {
		return Format(r.Value)
	}
	if r.Value >= percentMin || r.Value == 0 && in.High >= percentMin {
		digits := 1
		if in.Low < .1 && in.High < 1 || in.Low > .99 {
			digits = 2
		}
		return fmt.Sprintf("%.*f %% [%.*f–%.*f]", digits, 100*r.Value, digits, 100*in.Low, digits, 100*in.High)
	}
	return fmt.Sprintf("%s [%s–%s]", powers(r.Value), powers(in.Low), powers(in.High))
}

// Format returns a rate for people, in two or three digits.
func Format(rate float64) string {
	switch {
	case rate > .9995 && rate < 1:
		return "> 99.9 %"
	case rate >= .1 && rate <= .99:
		return fmt.Sprintf("%.1f %%", 100*rate)
	case rate >= percentMin:
		return fmt.Sprintf("%.2f %%", 100*rate)
	}
	return powers(rate)
}

func powers(rate float64) string {
	if !(rate > 0) {
		return "0"
	}
	exponent := math.Floor(math.Log10(rate))
	mantissa := rate / math.Pow(10, exponent)
	if mantissa >= 9.95 {
		mantissa, exponent = 1, exponent+1
	}
	return fmt.Sprintf("%.1fe%d", mantissa, int(exponent))
}
