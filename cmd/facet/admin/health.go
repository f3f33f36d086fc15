package admin

import "facet/node/wire"

// Health is the state of a cluster in one word.
type Health int

// The states.
const (
	Healthy Health = iota
	// Warned is a cluster that serves, with warnings or failing parts of nodes.
	Warned
	// Broken is a cluster that can't read or write a part of its data.
	Broken
)

// HealthOf returns the health of the cluster with this status.
func HealthOf(s wire.Status) Health {
	switch {
	case !s.Founded || len(s.Leaderless()) > 0:
		return Broken
	case len(s.Warnings) > 0 || len(failing(s)) > 0:
		return Warned
	default:
		return Healthy
	}
}
