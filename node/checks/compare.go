package checks

import (
	"fmt"
	"slices"

	"facet/internal/id"
	"facet/node/replicas"
	"facet/raftfsm"
)

// verdict is what a comparison has shown.
type verdict struct {
	right    [32]byte
	diverged []id.Member // not as the majority of all voters, ascending
	torn     bool        // there are differences and no majority
}

func (v verdict) alarm(number id.Shard) string {
	if !v.torn {
		return ""
	}
	return fmt.Sprintf("%s: its replicas differ, and no majority says which is right", replicas.Name(number))
}

// compare finds the members whose sum is not that of a majority of all voters, those
// that gave none included. Sums of different software are not compared.
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
