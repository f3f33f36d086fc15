package accuracy

import (
	"context"
	"fmt"
	"math"
)

const (
	// EventsMin is the least number of errors on which a rate may rest (the rule of 30: Doddington
	// et al., Speech Communication 31, 2000).
	EventsMin = 30
	// GroupsMax is the most groups of an attribute.
	GroupsMax = 64
)

// Partition divides persons into groups by one attribute, such as their age.
type Partition struct {
	Attribute string
	Groups    []Group
}

// Group is some of the persons.
type Group struct {
	Name    string
	Persons []int
}

// ByGroup has the rates of each group of an attribute, and how far they differ (ISO/IEC 19795-10).
// Both persons of a non-mated comparison are of the group.
type ByGroup struct {
	Attribute string       `json:"attribute"`
	Groups    []GroupRates `json:"groups"`
	// Spreads has an entry for each threshold.
	Spreads []SpreadAt `json:"spreads"`
}

// GroupRates has the rates of one group.
type GroupRates struct {
	Name          string    `json:"name"`
	Persons       int       `json:"persons"`
	Photos        int       `json:"photographs"`
	MatedPairs    int64     `json:"matedPairs"`
	NonMatedPairs int64     `json:"nonMatedPairs"`
	At            []GroupAt `json:"atThresholds"`
}

// GroupAt has a group's rates at a threshold. A rate of fewer than EventsMin errors is nil.
type GroupAt struct {
	Threshold int   `json:"threshold"`
	FMR       *Rate `json:"fmr,omitempty"`
	FNMR      *Rate `json:"fnmr,omitempty"`
}

// SpreadAt tells how far the groups' rates differ at a threshold. A Spread is nil if fewer than two
// groups have the rate.
type SpreadAt struct {
	Threshold int     `json:"threshold"`
	FMR       *Spread `json:"fmr,omitempty"`
	FNMR      *Spread `json:"fnmr,omitempty"`
}

// Spread tells how far the rates of groups differ.
type Spread struct {
	// Groups is the number of groups that have the rate.
	Groups int `json:"groups"`
	// Gini is the Gini coefficient with its correction for few groups, n/(n − 1): 0 if all rates
	// are equal, 1 if one group has all errors (Howard et al., arXiv:2203.05051).
	Gini float64 `json:"gini"`
	// Ratio is the largest rate divided by the smallest one.
	Ratio float64 `json:"ratio"`
}

// CompareGroups measures each group of a partition at the thresholds.
func CompareGroups(ctx context.Context, samples []Sample, compare Compare, p Partition, thresholds []int) (*ByGroup, error) {
	if len(p.Groups) > GroupsMax {
		return nil, fmt.Errorf("%w: %d groups of %s, more than %d", ErrTooMany, len(p.Groups), p.Attribute, GroupsMax)
	}
	out := &ByGroup{Attribute: p.Attribute}
	for _, g := range p.Groups {
		rates, err := compareGroup(ctx, samples, compare, g, thresholds)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", p.Attribute, g.Name, err)
		}
		out.Groups = append(out.Groups, rates)
	}
	for i, t := range thresholds {
		out.Spreads = append(out.Spreads, SpreadAt{
			Threshold: t,
			FMR:       spread(out.Groups, func(g GroupRates) *Rate { return g.At[i].FMR }),
			FNMR:      spread(out.Groups, func(g GroupRates) *Rate { return g.At[i].FNMR }),
		})
	}
	return out, nil
}

func compareGroup(ctx context.Context, samples []Sample, compare Compare, g Group, thresholds []int) (GroupRates, error) {
	number := make(map[int]int, len(g.Persons))
	for _, p := range g.Persons {
		number[p] = len(number)
	}
	var own []Sample
	var places []int
	for i, s := range samples {
		if n, ok := number[s.Person]; ok {
			s.Person = n
			own, places = append(own, s), append(places, i)
		}
	}
	evidence, err := CompareAll(ctx, own, func(a, b int) int { return compare(places[a], places[b]) })
	if err != nil {
		return GroupRates{}, err
	}
	v := evidence.Verify(Ask{Thresholds: thresholds})
	out := GroupRates{Name: g.Name, Persons: len(number), Photos: len(own), MatedPairs: v.MatedPairs, NonMatedPairs: v.NonMatedPairs}
	for _, a := range v.At {
		out.At = append(out.At, GroupAt{Threshold: a.Threshold, FMR: shown(a.FMR), FNMR: shown(a.FNMR)})
	}
	return out, nil
}

func shown(r Rate) *Rate {
	if r.Events < EventsMin {
		return nil
	}
	return &r
}

// spread compares the rates that the groups have.
func spread(groups []GroupRates, of func(GroupRates) *Rate) *Spread {
	var rates []float64
	for _, g := range groups {
		if r := of(g); r != nil {
			rates = append(rates, r.Value)
		}
	}
	n := float64(len(rates))
	if n < 2 {
		return nil
	}
	low, high := math.Inf(1), 0.
	var sum, differences float64
	for _, a := range rates {
		low, high, sum = min(low, a), max(high, a), sum+a
		for _, b := range rates {
			differences += math.Abs(a - b)
		}
	}
	return &Spread{Groups: len(rates), Gini: differences / (2 * n * sum) * n / (n - 1), Ratio: high / low}
}
