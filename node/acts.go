package node

import (
	"context"
	"time"

	"facet/internal/id"
	"facet/node/audit"
	"facet/node/audit/entry"
	"facet/node/loop"
	"facet/router"
)

const (
	// roundsInterval is how often this node looks for rounds of erasure that have ended.
	roundsInterval = time.Minute
	// roundsMax is the most rounds of one record.
	roundsMax = 500
)

// recordAct adds an act of the cluster to the log that it belongs to. Nothing waits for it.
func recordAct(n *Node, a router.Act) {
	if !n.recorder.Keeps(a.Log) {
		return
	}
	e := audit.Event{Record: entry.New(entry.Act, time.Now())}
	e.Operation, e.Reason, e.Searched, e.Former = a.Operation, entry.Text(a.Reason), a.Erased, a.Former
	e.Gallery, e.Generation, e.Case, e.Count = a.Gallery.ID, a.Gallery.Generation, a.Case, uint64(a.Count)
	for _, s := range a.Subjects {
		e.Named = append(e.Named, audit.Subject{ID: s.Subject, Salt: s.Salt})
	}
	n.recorder.Correct(a.Log, e)
}

// rounds records the rounds of erasure on this node's disk.
type rounds struct {
	*loop.Loop
	node *Node
	// ended is when the last round of each group ended that has a record.
	ended map[id.Shard]time.Time
}

func newRounds(n *Node) *rounds {
	return &rounds{Loop: loop.New("rounds of erasure"), node: n, ended: make(map[id.Shard]time.Time)}
}

// Run records rounds until ctx ends.
func (r *rounds) Run(ctx context.Context) {
	r.Every(ctx, roundsInterval, func(context.Context) error {
		r.look()
		return nil
	})
}

// look records the rounds that have ended since the last look.
func (r *rounds) look() {
	n := r.node
	a := router.Act{Log: id.ClusterLog, Operation: "erase removed data", Reason: "node " + n.cfg.Name + " " + n.id.String()}
	record := func() {
		recordAct(n, a)
		a.Erased = nil
	}
	cluster, _ := n.replicas.Meta().Cluster()
	for number := id.Meta; int(number) <= cluster.Shards; number++ {
		g, here := n.replicas.Group(number)
		if !here {
			delete(r.ended, number)
			continue
		}
		if s := g.Status(); s.Erased.After(r.ended[number]) {
			r.ended[number] = s.Erased
			a.Erased = append(a.Erased, uint64(number), s.ErasedTo)
		}
		if len(a.Erased) == 2*roundsMax {
			record()
		}
	}
	if len(a.Erased) > 0 {
		record()
	}
}
