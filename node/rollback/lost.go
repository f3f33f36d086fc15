package rollback

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
func (d *Detector) tell(ctx context.Context, r Row) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var a obeyed
	err := d.cfg.Peers.Ask(ctx, r.Member, methodLost, order{r.Group, r.Mark}, &a)
	switch {
	case isOld(err):
		d.cfg.Table.Forgive(r)
	case err == nil && a.Life > r.Life:
		d.cfg.Table.Reborn(r.Member, r.Group, a.Life)
	case err == nil && a.Out:
		d.cfg.Log.ErrorContext(ctx, "a replica on another node has lost state", "group", r.Group, "node", r.Member, "known", words(r.Mark))
	}
}

// giveWay takes a replica here out of service, unless it has begun another life.
func (d *Detector) giveWay(ctx context.Context, q order) (obeyed, error) {
	life := d.cfg.Table.Life(q.Group)
	if _, open := d.cfg.Replicas.Group(q.Group); open && q.Mark.Life >= life && !d.cfg.Replicas.Out(q.Group) {
		d.lost(ctx, q.Group, "its leader knows of it "+words(q.Mark))
		return obeyed{Life: life, Out: true}, nil
	}
	return obeyed{Life: life}, nil
}

// lost takes a replica here out of service, or stops the node if the replica is meta's.
func (d *Detector) lost(ctx context.Context, number id.Shard, why string) {
	if group, open := d.cfg.Replicas.Group(number); open {
		group.Gate().Bar()
	}
	if number == id.Meta {
		d.stop(ctx, "meta: "+why)
		return
	}
	d.mu.Lock()
	d.events = append(d.events, event{number, time.Now(), why})
	d.mu.Unlock()
	d.cfg.Replicas.Damage(number, fmt.Errorf("%w: %s", replicas.ErrStateLost, why))
}

// stop tells the other nodes why this one stops, and ends it.
func (d *Detector) stop(ctx context.Context, why string) {
	d.mu.Lock()
	again := d.failed
	d.failed = true
	var tell []id.Member
	for m, p := range d.peers {
		if p.answered || p.busy {
			tell = append(tell, m)
		}
	}
	d.mu.Unlock()
	if again {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var work sync.WaitGroup
	for _, m := range tell {
		work.Go(func() {
			if err := d.cfg.Peers.Ask(ctx, m, methodExchange, question{Member: d.cfg.Self, Lost: why}, nil); err != nil {
				d.cfg.Log.WarnContext(ctx, "another node was not told that this one has lost state", "node", m, "err", err)
			}
		})
	}
	work.Wait()
	d.cfg.Fatal(fmt.Errorf("%w: %s", replicas.ErrNodeStateLost, why))
}

// Count returns how many replicas here had lost state in the last hour, plus the nodes that
// stopped for that reason.
func (d *Detector) Count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.expire()
	return len(d.events) + len(d.stopped)
}

// Alarms describes, for operators, what has lost state.
func (d *Detector) Alarms() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.expire()
	var list []string
	for _, e := range d.events {
		list = append(list, fmt.Sprintf("%s had lost state on this node at %s and is rebuilt from its peers: %s", replicas.Name(e.group), e.at.UTC().Format(time.RFC3339), e.reason))
	}
	for m, r := range d.stopped {
		list = append(list, fmt.Sprintf("member %s has lost state and stopped at %s: %s", m, r.at.UTC().Format(time.RFC3339), r.reason))
	}
	slices.Sort(list)
	return list
}

// expire removes old events and the reports of removed nodes. The caller holds mu.
func (d *Detector) expire() {
	d.events = slices.DeleteFunc(d.events, func(e event) bool { return time.Since(e.at) > alarmFor })
	for m := range d.stopped {
		if d.removed(m) {
			delete(d.stopped, m)
		}
	}
}
