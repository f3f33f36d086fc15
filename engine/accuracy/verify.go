package accuracy

import (
	"math"
)

// Verification has the rates of comparisons 1:1.
type Verification struct {
	// MatedPairs and NonMatedPairs were compared. The failed pairs were not, because one of their
	// photographs has no face.
	MatedPairs     int64 `json:"matedPairs"`
	MatedFailed    int64 `json:"matedPairsFailed"`
	NonMatedPairs  int64 `json:"nonMatedPairs"`
	NonMatedFailed int64 `json:"nonMatedPairsFailed"`

	EER          Rate `json:"eer"`
	EERThreshold int  `json:"eerThreshold"`

	At      []AtThreshold `json:"atThresholds"`
	Targets []AtTarget    `json:"atFMR"`
	DET     []Point       `json:"det"`
	Discard []Discard     `json:"errorVersusDiscard,omitempty"`
}

// AtThreshold has the rates at one threshold.
type AtThreshold struct {
	Threshold int  `json:"threshold"`
	FMR       Rate `json:"fmr"`
	// FMRPerson is the mean of the FMR of each pair of persons. It is nil unless every pair of
	// photographs was compared and all matches were kept.
	FMRPerson *Rate `json:"fmrMeanOverPersons,omitempty"`
	// FalsePersonPairs is the number of pairs of persons with false matches, or 0 if not all of
	// these were kept.
	FalsePersonPairs int64 `json:"falseMatchPersonPairs,omitzero"`
	FNMR             Rate  `json:"fnmr"`
	// FNMRPerson is the mean of each person's FNMR: a person with many photographs counts no more
	// than one with two.
	FNMRPerson Rate `json:"fnmrMeanOverPersons"`
	GFAR       Rate `json:"gfar"`
	GFRR       Rate `json:"gfrr"`
}

// AtTarget has the rates at the lowest threshold whose FMR is at most Target.
type AtTarget struct {
	Target    float64 `json:"fmrMax"`
	Threshold int     `json:"threshold"`
	FMR       Rate    `json:"fmr"`
	FNMR      Rate    `json:"fnmr"`
}

// Point is one point of a DET curve.
type Point struct {
	Threshold int     `json:"threshold"`
	FMR       float64 `json:"fmr"`
	FNMR      float64 `json:"fnmr"`
}

// Ask selects rates.
type Ask struct {
	// Thresholds are scores, 0 to 10000.
	Thresholds []int
	// FMR are false match rates, 0 to 1.
	FMR []float64
	// Discard is the threshold of the error-versus-discard curve, 0 for none.
	Discard int
}

// pointStep is the step between the thresholds of Verification.DET.
const pointStep = 50

// Verify returns the rates that ask selects, with intervals.
func (e *Evidence) Verify(ask Ask) *Verification {
	curve := e.Curve()
	v := &Verification{
		MatedPairs: e.Mated.Total(), MatedFailed: e.MatedFailed,
		NonMatedPairs: e.NonMated.Total(), NonMatedFailed: e.NonMatedFailed,
	}
	eer, at := curve.EER()
	v.EER, v.EERThreshold = Rate{Value: eer}, at
	for _, t := range ask.Thresholds {
		v.At = append(v.At, e.at(t))
	}
	for _, rate := range ask.FMR {
		t := curve.ThresholdFor(rate)
		a := e.at(t)
		v.Targets = append(v.Targets, AtTarget{Target: rate, Threshold: t, FMR: a.FMR, FNMR: a.FNMR})
	}
	for t := 0; t < Thresholds; t += pointStep {
		v.DET = append(v.DET, Point{t, curve.FMR[t], curve.FNMR[t]})
	}
	if ask.Discard > 0 {
		v.Discard = e.discard(ask.Discard)
	}
	e.intervals(v)
	return v
}

// Curve returns the DET curve.
func (e *Evidence) Curve() *Curve { return CurveOf(&e.Mated, &e.NonMated) }

func (e *Evidence) at(t int) AtThreshold {
	matched, rejected := e.NonMated.AtLeast(t), e.Mated.Total()-e.Mated.AtLeast(t)
	a := AtThreshold{
		Threshold: t,
		FMR:       Share(matched, e.NonMated.Total()),
		FNMR:      Share(rejected, e.Mated.Total()),
		GFAR:      Share(matched, e.NonMated.Total()+e.NonMatedFailed),
		GFRR:      Share(rejected+e.MatedFailed, e.Mated.Total()+e.MatedFailed),

		FalsePersonPairs: e.personPairs(t),
	}
	if e.photos != nil && t >= e.floor {
		a.FMRPerson = &Rate{Value: e.personFMR(t)}
	}
	runs := e.runs()
	for _, run := range runs {
		below := 0
		for _, m := range run {
			if int(m.score) < t {
				below++
			}
		}
		a.FNMRPerson.Value += float64(below) / float64(len(run)) / float64(len(runs))
	}
	return a
}

// personFMR returns the mean over pairs of persons of their FMR.
func (e *Evidence) personFMR(threshold int) float64 {
	var sum float64
	for _, t := range e.nonMated {
		if int(t.score) >= threshold {
			sum += e.weight(t)
		}
	}
	return sum / float64(max(e.personPairsAll(), 1))
}

// personPairsAll returns the number of pairs of persons compared.
func (e *Evidence) personPairsAll() int64 {
	var persons int64
	for _, photos := range e.photos {
		if photos > 0 {
			persons++
		}
	}
	return persons * (persons - 1) / 2
}

// weight returns the weight of a trial if each pair of persons has 1 in total.
func (e *Evidence) weight(t trial) float64 {
	return 1 / (float64(e.photos[t.a]) * float64(e.photos[t.b]))
}

// personPairs returns the number of pairs of persons with a match at the threshold.
func (e *Evidence) personPairs(threshold int) int64 {
	if threshold < e.floor {
		return 0
	}
	pairs := make(map[[2]int32]bool)
	for _, t := range e.nonMated {
		if int(t.score) >= threshold {
			pairs[[2]int32{min(t.a, t.b), max(t.a, t.b)}] = true
		}
	}
	return int64(len(pairs))
}

// intervals computes all intervals from the same resamples.
func (e *Evidence) intervals(v *Verification) {
	if e.persons == 0 {
		return
	}
	nAt, nTargets := len(v.At), len(v.Targets)
	const each = 4
	values := make([][]float64, 1+each*nAt+2*nTargets)
	for i := range values {
		values[i] = make([]float64, Resamples)
	}
	resamples(func(n int) {
		r := e.resample(n)
		values[0][n] = r.eer()
		for i, a := range v.At {
			values[1+each*i][n] = r.fmr(a.Threshold)
			values[2+each*i][n] = r.FNMR[a.Threshold]
			values[3+each*i][n] = r.personFNMR[a.Threshold]
			values[4+each*i][n] = r.personFMR[a.Threshold]
		}
		for i, a := range v.Targets {
			values[1+each*nAt+2*i][n] = r.fmr(a.Threshold)
			values[2+each*nAt+2*i][n] = r.fnmrAt(a.Target)
		}
	})
	v.EER = v.EER.widen(values[0], min(v.MatedPairs, v.NonMatedPairs))
	for i := range v.At {
		a := &v.At[i]
		a.FMR = a.FMR.widen(values[1+each*i], a.FMR.Trials)
		a.FNMR = a.FNMR.widen(values[2+each*i], a.FNMR.Trials)
		a.FNMRPerson = a.FNMRPerson.widen(values[3+each*i], int64(len(e.runs())))
		if a.FMRPerson != nil {
			*a.FMRPerson = a.FMRPerson.widen(values[4+each*i], e.personPairsAll())
		}
	}
	for i := range v.Targets {
		a := &v.Targets[i]
		a.FMR = a.FMR.widen(values[1+each*nAt+2*i], a.FMR.Trials)
		a.FNMR = a.FNMR.widen(values[2+each*nAt+2*i], a.FNMR.Trials)
	}
}

func (r *resampled) fmr(threshold int) float64 {
	if threshold < r.floor {
		return math.NaN()
	}
	return r.FMR[threshold]
}

// eer returns the EER, or NaN if it depends on scores below the floor.
func (r *resampled) eer() float64 {
	rate, t := r.EER()
	if t <= r.floor && r.floor > 0 {
		return math.NaN()
	}
	return rate
}

// fnmrAt returns the FNMR where the FMR is at most rate, or NaN if that is below the floor.
func (r *resampled) fnmrAt(rate float64) float64 {
	t := r.ThresholdFor(rate)
	if t <= r.floor && r.floor > 0 {
		return math.NaN()
	}
	return r.FNMR[t]
}
