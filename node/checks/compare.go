package checks

import (
	"fmt"
	"slices"

	"facet/internal/id"
	"facet/node/replicas"
	"facet/raftfsm"
)

// verdict is the result of a comparison.
type verdict struct {
	right    [32]byte    // the sum of a majority of all voters
	diverged []id.Member // members with another sum, ascending
	torn     bool        // sums differ and none has a majority
}

func (v verdict) alarm(number id.Shard) string {
	if !v.torn {
		return ""
	}
	return fmt.Sprintf("%s: its replicas differ, and no majority says which is right", replicas.Name(number))
}

// compare looks for a sum that a majority of all voters has; a voter without a sum counts as
// a voter, too. It compares sums of the same software only.
func compare(servers []raftfsm.Server, sums map[id.Member]sumAnswer) verdict {
	type state struct {
		digest   [32]byte
		software string
	}
	votes, kinds, voters := map[state]int{}, map[string]map[[32]byte]bool{}, 0
	for _, s := range servers {
		a, known := sums[s.Member]
		if s.Voter {
			voters++
		}
		if !known {
			continue
		}
		if kinds[a.Software] == nil {
			kinds[a.Software] = map[[32]byte]bool{}
		}
		kinds[a.Software][a.Digest] = true
		if s.Voter {
			votes[state{a.Digest, a.Software}]++
		}
	}
	var v verdict
	for _, different := range kinds {
		v.torn = v.torn || len(different) > 1
	}
	for right, count := range votes {
		if count <= voters/2 {
			continue
		}
		v.right, v.torn = right.digest, false
		for m, a := range sums {
			if a.Software == right.software && a.Digest != right.digest {
				v.diverged = append(v.diverged, m)
			}
		}
	}
	slices.Sort(v.diverged)
	return v
}
