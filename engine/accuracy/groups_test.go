package accuracy

import (
	"slices"
	"testing"

	"facet/internal/must"
)

// Three groups of 40 persons with two photographs each. Of the non-mated pairs of a group, a share
// that grows with the group has a high score; persons of different groups always match.
func TestGroupsAreMeasuredApart(t *testing.T) {
	t.Parallel()
	const each = 40
	var samples []Sample
	for p := range 3 * each {
		samples = append(samples, Sample{Person: p, Acquired: true}, Sample{Person: p, Acquired: true})
	}
	compare := func(a, b int) int {
		p, q := min(a, b)/2, max(a, b)/2
		switch {
		case p == q:
			return 100 // every mated comparison is missed
		case p/each != q/each:
			return 9000
		case (7*p+3*q)%10 <= p/each: // 10, 20, 30 %
			return 8000
		}
		return 0
	}
	var parts Partition
	parts.Attribute = "age"
	for i, name := range []string{"young", "middle", "old"} {
		g := Group{Name: name}
		for p := range each {
			g.Persons = append(g.Persons, i*each+each-1-p) // in any order
		}
		parts.Groups = append(parts.Groups, g)
	}
	parts.Groups = append(parts.Groups, Group{Name: "few", Persons: []int{0, 1, 2}})
	got, err := CompareGroups(t.Context(), samples, compare, parts, []int{7000, 8500})
	must.Do(t, err)
	var rates []float64
	for i, g := range got.Groups[:3] {
		if g.Persons != each || g.Photos != 2*each || g.MatedPairs != each || g.NonMatedPairs != each*(each-1)/2*4 {
			t.Errorf("%s: %+v", g.Name, g)
		}
		rates = append(rates, g.At[0].FMR.Value)
		near(t, g.Name, rates[i], float64(i+1)/10, .04)
		if in := g.At[0].FMR.Interval; in == nil || in.Low >= rates[i] || in.High <= rates[i] {
			t.Errorf("%s has the interval %v about %v", g.Name, in, rates[i])
		}
		if g.At[0].FNMR == nil || g.At[0].FNMR.Value != 1 || g.At[1].FMR != nil {
			t.Errorf("%s: FNMR %v, FMR at a score that none has: %v", g.Name, g.At[0].FNMR, g.At[1].FMR)
		}
	}
	if few := got.Groups[3]; few.At[0].FMR != nil || few.At[0].FNMR != nil {
		t.Errorf("12 comparisons show rates: %+v", few)
	}
	s := got.Spreads[0].FMR
	if s == nil || s.Groups != 3 || got.Spreads[1].FMR != nil {
		t.Fatalf("spreads: %+v, %+v", s, got.Spreads[1])
	}
	// By hand: Σ|a − b| over ordered pairs is 4 (c − a); Gini is that / (2 n Σ) · n / (n − 1).
	near(t, "Gini", s.Gini, 4*(rates[2]-rates[0])/(2*(rates[0]+rates[1]+rates[2]))/2, 1e-12)
	near(t, "ratio", s.Ratio, rates[2]/rates[0], 1e-12)
	if f := got.Spreads[0].FNMR; f == nil || f.Gini != 0 || f.Ratio != 1 {
		t.Errorf("equal FNMR: %+v", f)
	}
	slices.Reverse(parts.Groups)
	parts.Groups = append(parts.Groups, make([]Group, GroupsMax)...)
	if _, err := CompareGroups(t.Context(), samples, compare, parts, nil); err == nil {
		t.Error("too many groups are measured")
	}
}
