package accuracy

import (
	"math"
)

// Verification are the rates of comparisons 1:1.
type Verification struct {
	// MatedPairs and NonMatedPairs were compared, those named failed were not, for
	// one of their photographs has no face.
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

// AtThreshold are the rates at one threshold.
type AtThreshold struct {
	Threshold int  `json:"threshold"`
	FMR       Rate `json:"fmr"`
	// FMRPerson is the mean over pairs of persons of each one's FMR, nil where it is
	// not known: every pair of photographs must be compared, and those that match kept.
	FMRPerson *Rate `json:"fmrMeanOverPersons,omitempty"`
	// FalsePersonPairs is between how many pairs of persons the false matches are;
	// 0 where it is not known, since not all of them were kept.
	FalsePersonPairs int64 `json:"falseMatchPersonPairs,omitzero"`
	FNMR             Rate  `json:"fnmr"`
	// FNMRPerson is the mean over persons of each one's FNMR: a person with many
	// photographs counts no more than one with two.
	FNMRPerson Rate `json:"fnmrMeanOverPersons"`
	GFAR       Rate `json:"gfar"`
	GFRR       Rate `json:"gfrr"`
}

// AtTarget are the rates at the lowest threshold whose FMR is at most Target.
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

// Ask says which rates are wanted.
type Ask struct {
	// Thresholds are scores, 0 to 10000.
	Thresholds []int
	// FMR are false match rates, 0 to 1.
	FMR []float64
	// Discard is the threshold of the error-versus-discard curve, 0 for none.
	Discard int
}

// pointStep is the distance of the thresholds of Verification.DET.
const pointStep = 50

// Verify computes the rates that ask names, with intervals.
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

// Curve is the DET curve.
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

// personFMR is the mean over pairs of persons of their FMR.
func (e *Evidence) personFMR(threshold int) float64 {
	var sum float64
	for _, t := range e.nonMated {
		if int(t.score) >= threshold {
			sum += e.weight(t)
		}
	}
	return sum / float64(max(e.personPairsAll(), 1))
}

// personPairsAll counts the pairs of persons that were compared.
func (e *Evidence) personPairsAll() int64 {
	var persons int64
	for _, photos := range e.photos {
		if photos > 0 {
			persons++
		}
	}
	return persons * (persons - 1) / 2
}

// weight is that of a trial when each pair of persons has 1 in all.
func (e *Evidence) weight(t trial) float64 {
	return 1 / (float64(e.photos[t.a]) * float64(e.photos[t.b]))
}

// personPairs counts the pairs of persons that match at a threshold.
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

// intervals fills in all intervals, from the same resamples.
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

// eer is NaN where it would need scores below the floor.
func (r *resampled) eer() float64 {
	rate, t := r.EER()
	if t <= r.floor && r.floor > 0 {
		return math.NaN()
	}
	return rate
}

// fnmrAt is FNMR where FMR is at most rate, NaN where that lies below the floor.
func (r *resampled) fnmrAt(rate float64) float64 {
	t := r.ThresholdFor(rate)
	if t <= r.floor && r.floor > 0 {
		return math.NaN()
	}
	return r.FNMR[t]
}
