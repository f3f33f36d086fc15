package bench

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"facet/engine/accuracy"
)

// Wanted says how many false alarms are bearable.
type Wanted struct {
	// Searches is how many searches a day show somebody who is not enrolled, or 0 for no
	// advice. Alarms is how many of them may return a candidate.
	Searches float64 `json:"searchesPerDay"`
	Alarms   float64 `json:"alarmsPerDay"`
	// Gallery is a number of persons to advise on beside the measured ones, or 0.
	Gallery int `json:"gallery,omitzero"`
}

// Advice has the lowest thresholds that give at most the wanted number of false alarms.
type Advice struct {
	Wanted
	FPIR  float64    `json:"fpirMax"`
	Sizes []AdviceOf `json:"galleries"`
}

// AdviceOf is the advice for a gallery of N persons.
type AdviceOf struct {
	N int `json:"n"`
	// Threshold is 0 if no threshold is known to be high enough. Stated is true if too few
	// comparisons of two persons reached it here: then it rests on what the pack states.
	Threshold int  `json:"threshold"`
	Stated    bool `json:"stated,omitzero"`
	// FPIR and FNIR were measured in galleries of N. They are nil for one that the photographs
	// don't suffice for, and without a threshold.
	FPIR *accuracy.Rate `json:"fpir,omitempty"`
	FNIR *accuracy.Rate `json:"fnir,omitempty"`
}

// advise returns advice on galleries of each measured size, and of the wanted one.
func (m *measured) advise(ctx context.Context, cfg Config, doc *Document) (*Advice, error) {
	a := &Advice{Wanted: cfg.Wanted, FPIR: min(1, cfg.Wanted.Alarms/cfg.Wanted.Searches)}
	enrolled := accuracy.Enrol(m.samples, cfg.Photos)
	for _, s := range doc.Identification.Sizes {
		of := AdviceOf{N: s.N}
		of.Threshold, of.Stated = doc.least(rateFor(a.FPIR, s.N, doc.Identification))
		if of.Threshold > 0 {
			at, err := accuracy.Identify(ctx, m.samples, enrolled, m.compare.Best(enrolled), []int{s.N}, []int{of.Threshold})
			if err != nil {
				return nil, fmt.Errorf("search galleries: %w", err)
			}
			of.FPIR, of.FNIR = &at.Sizes[0].At[0].FPIR, &at.Sizes[0].At[0].FNIR
		}
		a.Sizes = append(a.Sizes, of)
	}
	if n := cfg.Wanted.Gallery; n > 0 {
		of := AdviceOf{N: n}
		of.Threshold, of.Stated = doc.least(rateFor(a.FPIR, n, doc.Identification))
		a.Sizes = append(a.Sizes, of)
	}
	return a, nil
}

// rateFor returns the FMR that gives the FPIR in a gallery of n persons, who are enrolled with as
// many photographs each as those of id are on average.
func rateFor(fpir float64, n int, id *accuracy.Identification) float64 {
	photos := float64(id.Photos) / float64(max(1, id.Persons-int(id.NotEnrolled.Events)))
	return -math.Expm1(math.Log1p(-fpir) / (float64(n) * photos))
}

// least returns the least threshold, rounded up, whose false match rate is at most fmr, and whether
// that rests on what the pack states; 0 if the pack states none that low.
func (d *Document) least(fmr float64) (threshold int, byPack bool) {
	const step = 50
	if fmr*float64(d.All.NonMatedPairs) >= accuracy.EventsMin {
		return min((d.all.ThresholdFor(fmr)+step-1)/step*step, accuracy.Thresholds-1), false
	}
	const rounding = 1e-9 // of the logarithm
	at := stated + int(math.Ceil(1000*math.Log10(d.Pack.FMR7000/fmr)/step-rounding))*step
	if at > supportedMax {
		return 0, true
	}
	return at, true
}

func (a *Advice) title() string {
	return fmt.Sprintf("Thresholds for %g searches a day of people who are not enrolled, of which at most %g may find somebody (FPIR ≤ %s)",
		a.Searches, a.Alarms, accuracy.Format(a.FPIR))
}

func (a *Advice) table() table {
	t := table{{"N", "threshold", "rests on", "FPIR measured there", "false alarms a day", "FNIR"}}
	for _, s := range a.Sizes {
		row := []string{number(s.N), "none", "–", "–", "–", "–"}
		if s.Threshold > 0 {
			row[1], row[2] = strconv.Itoa(s.Threshold), "these photographs"
			if s.Stated {
				row[2] = "what the pack states"
			}
		}
		if s.FPIR != nil {
			row[3], row[4], row[5] = s.FPIR.String(), strconv.FormatFloat(s.FPIR.Value*a.Searches, 'g', 2, 64), s.FNIR.String()
		}
		t = append(t, row)
	}
	return t
}
