package rollback

import (
	"context"
	"errors"
	"fmt"
	"time"

	"facet/internal/id"
	"facet/node/transport"
)

// question is the request of methodExchange.
type question struct {
	Member id.Member `json:"member"`
	Run    Run       `json:"run"`
	Rows   []Row     `json:"rows,omitempty"`
	// First asks for the rows of Member.
	First bool `json:"first,omitempty"`
	// Lost is the reason why the node stops.
	Lost string `json:"lost,omitempty"`
}

// answer is the answer to a question.
type answer struct {
	// Run is the latest run of the asking member that the node has heard of.
	Run  Run   `json:"run"`
	Rows []Row `json:"rows,omitempty"`
	// Took reports whether the node has recorded the rows of the question.
	Took bool `json:"took"`
}

// ask makes one exchange with m, whose state p is.
func (d *Detector) ask(ctx context.Context, m id.Member, p *other) {
	d.mu.Lock()
	first, since := !p.answered, p.version
	d.mu.Unlock()
	q := question{Member: d.cfg.Self, Run: d.cfg.Table.NextRound(), First: first}
	var version uint64
	q.Rows, version = d.cfg.Table.Since(since)
	var a answer
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	err := d.cfg.Peers.Ask(asking, m, methodExchange, q, &a)
	if isOld(err) {
		err = nil // it knows nothing
	}
	refuted := err == nil && d.cfg.Table.Refuted(a.Run)
	if refuted && d.cfg.Holds(ctx) {
		d.stop(ctx, fmt.Sprintf("%s knows a later start of this node", m))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	p.busy = false
	if err != nil || refuted {
		p.fails++
		return
	}
	d.cfg.Table.Adopt(a.Rows)
	for _, r := range a.Rows {
		if r.Member == d.cfg.Self && d.mine[r.Group].Before(r.Mark) {
			d.mine[r.Group] = claim{r.Mark, m}
		}
	}
	if a.Took {
		p.version = version
	}
	p.answered, p.fails = true, 0
	if d.first.IsZero() {
		d.first = time.Now()
	}
}

// isOld reports whether err is the answer of a release that does not know the request.
func isOld(err error) bool {
	remote, ok := errors.AsType[*transport.RemoteError](err)
	return ok && remote.Payload == nil
}

// exchange answers a question of another node.
func (d *Detector) exchange(ctx context.Context, q question) (answer, error) {
	who, err := q.Member.Node()
	if caller, ok := transport.Caller(ctx); err != nil || !ok || caller != who {
		return answer{}, errors.New("a node may speak for itself only")
	}
	var a answer
	if q.First {
		a.Rows = d.cfg.Table.Of(q.Member)
	}
	_, recorded := d.cfg.Replicas.Meta().Node(who)
	if !recorded {
		q.Rows = nil
	}
	known, latest := d.cfg.Table.Learn(q.Member, q.Run, q.Rows)
	a.Run, a.Took = known, recorded && latest
	d.mu.Lock()
	defer d.mu.Unlock()
	if old := d.stopped[q.Member]; q.Lost != "" {
		d.stopped[q.Member] = report{time.Now(), q.Lost}
		d.cfg.Log.ErrorContext(ctx, "another node has lost state and stops", "node", q.Member, "why", q.Lost)
	} else if time.Since(old.at) > alarmRest {
		delete(d.stopped, q.Member)
	}
	if p := d.peers[q.Member]; p != nil && !p.answered { // it can be reached now
		p.fails, p.began = 0, time.Time{}
		d.cfg.Table.Wake()
	}
	return a, nil
}
