package node

import (
	"testing"

	"facet/internal/id"
	"facet/raftfsm/shardfsm"
	"facet/shard/job"
	"facet/shard/seal"
)

// casesHere calls f with each case of this node's replicas.
func (n *Node) casesHere(t *testing.T, f func(at id.Shard, name job.Name, index uint32, key *seal.Key, sealed []byte, c job.Case)) {
	t.Helper()
	for _, number := range n.replicas.Numbers() {
		m, ok := n.replicas.Shard(number)
		if !ok {
			continue
		}
		for _, name := range m.Jobs().Batches(job.Cases) {
			secret, err := n.DataSecret(name.Gallery)
			if err != nil {
				t.Fatal(err)
			}
			key, err := seal.NewKey(secret)
			if err != nil {
				t.Fatal(err)
			}
			page, _, _ := m.Jobs().Page(name, 0, job.CasesMax)
			for _, r := range page {
				if len(r.Sealed) == 0 {
					continue
				}
				c, err := job.OpenCase(key, name.Gallery, name.Generation, r.Sealed)
				if err != nil {
					t.Fatal(err)
				}
				f(number, name, r.Index, key, r.Sealed, c)
			}
		}
	}
}

// CasesHere returns the cases of this node's replicas.
func (n *Node) CasesHere(t *testing.T) (list []job.Case) {
	t.Helper()
	n.casesHere(t, func(_ id.Shard, _ job.Name, _ uint32, _ *seal.Key, _ []byte, c job.Case) { list = append(list, c) })
	return list
}

// AgeCases changes the cases of the shards that this node leads.
func (n *Node) AgeCases(t *testing.T, change func(*job.Case)) {
	t.Helper()
	n.casesHere(t, func(at id.Shard, name job.Name, index uint32, key *seal.Key, sealed []byte, c job.Case) {
		g, ok := n.replicas.Group(at)
		if !ok || !g.IsLeader() {
			return
		}
		change(&c)
		put := shardfsm.PutItem{
			Name: shardfsm.JobName{Gallery: name.Gallery, Generation: name.Generation, Batch: name.Batch}, Kind: job.Cases, Index: index, Old: sealed,
			New: job.SealCase(key, name.Gallery, name.Generation, &c),
		}
		if _, err := g.Propose(t.Context(), shardfsm.PutItemOp.Encode(put)); err != nil {
			t.Fatal(err)
		}
	})
}
