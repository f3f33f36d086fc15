package witness

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
func (w *Witness) ask(ctx context.Context, m id.Member, p *other) {
	w.mu.Lock()
	first, since := !p.answered, p.version
	w.mu.Unlock()
	q := question{Member: w.cfg.Self, Run: w.cfg.Table.NextRound(), First: first}
	var version uint64
	q.Rows, version = w.cfg.Table.Since(since)
	var a answer
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	err := w.cfg.Peers.Ask(asking, m, methodExchange, q, &a)
	if isOld(err) {
		err = nil // it knows nothing
	}
	if err == nil && w.cfg.Table.Refuted(a.Run) {
		w.stop(ctx, fmt.Sprintf("%s knows a later start of this node", m))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	p.busy = false
	if err != nil {
		p.fails++
		return
	}
	w.cfg.Table.Adopt(a.Rows)
	for _, r := range a.Rows {
		if r.Member == w.cfg.Self && w.mine[r.Group].Before(r.Mark) {
			w.mine[r.Group] = claim{r.Mark, m}
		}
	}
	if a.Took {
		p.version = version
	}
	p.answered, p.fails = true, 0
	if w.first.IsZero() {
		w.first = time.Now()
	}
}

// isOld reports whether err is the answer of a release that does not know the request.
func isOld(err error) bool {
	remote, ok := errors.AsType[*transport.RemoteError](err)
	return ok && remote.Payload == nil
}

// exchange answers a question of another node.
func (w *Witness) exchange(ctx context.Context, q question) (answer, error) {
	who, err := q.Member.Node()
	if caller, ok := transport.Caller(ctx); err != nil || !ok || caller != who {
		return answer{}, errors.New("a node may speak for itself only")
	}
	_, recorded := w.cfg.Replicas.Meta().Node(who)
	a := answer{Took: recorded}
	if q.First {
		a.Rows = w.cfg.Table.Of(q.Member)
	}
	if !recorded {
		q.Rows = nil
	}
	a.Run = w.cfg.Table.Learn(q.Member, q.Run, q.Rows)
	w.mu.Lock()
	defer w.mu.Unlock()
	if old := w.stopped[q.Member]; q.Lost != "" {
		w.stopped[q.Member] = report{time.Now(), q.Lost}
		w.cfg.Log.Error("another node has lost state and stops", "node", q.Member, "why", q.Lost)
	} else if time.Since(old.at) > alarmRest {
		delete(w.stopped, q.Member)
	}
	if p := w.peers[q.Member]; p != nil && !p.answered { // it can be reached now
		p.fails, p.began = 0, time.Time{}
		w.cfg.Table.Wake()
	}
	return a, nil
}
