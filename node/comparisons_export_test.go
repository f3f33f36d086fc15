package node

import (
	"context"

	"facet/shard/job"
)

// RedactDuplicates takes the pairs of subjects that are gone out of the reports of the shards that this
// node leads.
func (n *Node) RedactDuplicates(ctx context.Context) error { return n.router.RedactDuplicates(ctx) }

// PairsHere returns how many pairs the reports have on this node's replicas.
func (n *Node) PairsHere() (pairs int) {
	for _, number := range n.replicas.Numbers() {
		if m, ok := n.replicas.Shard(number); ok {
			for _, name := range m.Jobs().Batches(job.Duplicates) {
				pairs += m.Jobs().Paired(name)
			}
		}
	}
	return pairs
}

// LeadsReport reports whether this node leads a shard with a comparison that goes on.
func (n *Node) LeadsReport() bool {
	for _, number := range n.replicas.Numbers() {
		g, ok := n.replicas.Group(number)
		if m, here := n.replicas.Shard(number); ok && here && g.IsLeader() && m.Jobs().Left(job.Duplicates) > 0 {
			return true
		}
	}
	return false
}

// DifferentHere returns how many pairs of different subjects this node's replicas have.
func (n *Node) DifferentHere() (pairs int) {
	for _, number := range n.replicas.Numbers() {
		m, ok := n.replicas.Shard(number)
		if !ok {
			continue
		}
		for _, name := range m.Jobs().Batches(job.Different) {
			page, _, _ := m.Jobs().Page(name, 0, job.DifferentMax)
			for _, r := range page {
				if len(r.Sealed) > 0 {
					pairs++
				}
			}
		}
	}
	return pairs
}
