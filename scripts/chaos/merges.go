package main

import (
	"fmt"
	"slices"

	"facet/scripts/chaos/traffic"
)

// Merges counts the merges of a run.
type Merges struct {
	Ended     int `json:"ended"`
	TwoShards int `json:"twoShards"` // source and target on two shards
	Left      int `json:"left"`      // their clients did not wait for an answer
	LeftEnded int `json:"leftEnded"` // those of Left that ended; the others reached no node
	Faulty    int `json:"faulty"`    // with a fault meanwhile
	Killed    int `json:"killed"`    // a node with the source's or the target's shard was killed meanwhile
	Leader    int `json:"leader"`    // it led the source's or the target's shard
}

// mergesOf counts merges.
func mergesOf(windows []window, list []traffic.Merge) (sum Merges) {
	count := func(n *int, yes bool) {
		if yes {
			*n++
		}
	}
	for _, m := range list {
		ended := m.End != 0
		count(&sum.Left, m.Left)
		count(&sum.LeftEnded, m.Left && ended)
		if !ended {
			continue
		}
		sum.Ended++
		count(&sum.TwoShards, m.Shards[0] != m.Shards[1])
		count(&sum.Faulty, slices.ContainsFunc(windows, func(w window) bool { return w.from < m.End && w.to > m.Call }))
		killed := func(shards func(window) []int) bool {
			return slices.ContainsFunc(windows, func(w window) bool {
				one := slices.ContainsFunc(m.Shards[:], func(shard int) bool { return slices.Contains(shards(w), shard) })
				return w.kills() && w.from > m.Call && w.from < m.End && one
			})
		}
		count(&sum.Killed, killed(func(w window) []int { return w.held }))
		count(&sum.Leader, killed(func(w window) []int { return w.led }))
	}
	return sum
}

// killers are the faults that end their victim by SIGKILL.
var killers = []string{"kill", "kill most", "kill all", "power", "power all", "wreck"}

func (w window) kills() bool { return slices.Contains(killers, w.fault) }

// String describes the merges for people.
func (m Merges) String() string {
	return fmt.Sprintf("merges: %d (%d between two shards), %d with a fault meanwhile; %d had a node of their shards killed, %d a leader; clients left %d, %d of which ended",
		m.Ended, m.TwoShards, m.Faulty, m.Killed, m.Leader, m.Left, m.LeftEnded)
}
