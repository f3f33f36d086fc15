package witness

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"facet/internal/id"
	"facet/node/replicas"
	"facet/raftfsm"
)

// order is the request of methodLost.
type order struct {
	Group id.Shard     `json:"group"`
	Mark  raftfsm.Mark `json:"mark"`
}

// obeyed is the answer to an order.
type obeyed struct {
	Life uint64 `json:"life"` // of the node's replica
	// Out reports whether the node has taken the replica out because of the order.
	Out bool `json:"out,omitempty"`
}

// tell tells a node that its replica has lost state.
func (w *Witness) tell(ctx context.Context, r Row) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var a obeyed
	err := w.cfg.Peers.Ask(ctx, r.Member, methodLost, order{r.Group, r.Mark}, &a)
	switch {
	case isOld(err):
		w.cfg.Table.Forgive(r)
	case err == nil && a.Life > r.Life:
		w.cfg.Table.Reborn(r.Member, r.Group, a.Life)
	case err == nil && a.Out:
		w.cfg.Log.Error("a replica on another node has lost state", "group", r.Group, "node", r.Member, "known", words(r.Mark))
	}
}

// giveWay takes a replica here out of service, unless it has begun another life.
func (w *Witness) giveWay(ctx context.Context, q order) (obeyed, error) {
	life := w.cfg.Table.Life(q.Group)
	if _, open := w.cfg.Replicas.Group(q.Group); open && q.Mark.Life >= life && !w.cfg.Replicas.Out(q.Group) {
		w.lost(ctx, q.Group, "its leader knows of it "+words(q.Mark))
		return obeyed{Life: life, Out: true}, nil
	}
	return obeyed{Life: life}, nil
}

// lost takes a replica here out of service, or stops the node if the replica is meta's.
func (w *Witness) lost(ctx context.Context, number id.Shard, why string) {
	if group, open := w.cfg.Replicas.Group(number); open {
		group.Gate().Bar()
	}
	if number == id.Meta {
		w.stop(ctx, "meta: "+why)
		return
	}
	w.mu.Lock()
	w.events = append(w.events, event{number, time.Now(), why})
	w.mu.Unlock()
	w.cfg.Replicas.Damage(number, fmt.Errorf("%w: %s", replicas.ErrStateLost, why))
}

// stop tells the other nodes why this one stops, and ends it.
func (w *Witness) stop(ctx context.Context, why string) {
	w.mu.Lock()
	again := w.failed
	w.failed = true
	var tell []id.Member
	for m, p := range w.peers {
		if p.answered || p.busy {
			tell = append(tell, m)
		}
	}
	w.mu.Unlock()
	if again {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var work sync.WaitGroup
	for _, m := range tell {
		work.Go(func() {
			if err := w.cfg.Peers.Ask(ctx, m, methodExchange, question{Member: w.cfg.Self, Lost: why}, nil); err != nil {
				w.cfg.Log.Warn("another node was not told that this one has lost state", "node", m, "err", err)
			}
		})
	}
	work.Wait()
	w.cfg.Fatal(fmt.Errorf("%w: %s", replicas.ErrNodeStateLost, why))
}

// Count returns how many replicas here had lost state in the last hour, plus the nodes that
// stopped for that reason.
func (w *Witness) Count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expire()
	return len(w.events) + len(w.stopped)
}

// Alarms describes, for operators, what has lost state.
func (w *Witness) Alarms() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expire()
	var list []string
	for _, e := range w.events {
		list = append(list, fmt.Sprintf("%s had lost state on this node at %s and is rebuilt from its peers: %s", replicas.Name(e.group), e.at.UTC().Format(time.RFC3339), e.reason))
	}
	for m, r := range w.stopped {
		list = append(list, fmt.Sprintf("member %s has lost state and stopped at %s: %s", m, r.at.UTC().Format(time.RFC3339), r.reason))
	}
	slices.Sort(list)
	return list
}

// expire removes old events and the reports of removed nodes. The caller holds mu.
func (w *Witness) expire() {
	w.events = slices.DeleteFunc(w.events, func(e event) bool { return time.Since(e.at) > alarmFor })
	for m := range w.stopped {
		if w.removed(m) {
			delete(w.stopped, m)
		}
	}
}
