package calls

import (
	"context"
	"errors"
	"time"

	"facet/internal/id"
	"facet/raftfsm"
)

// readTries is how many replicas a read asks before it asks the leader.
const readTries = 2

// CallAny carries out a read at one of the replicas of group, or else at its leader.
func CallAny[H, Q, A any](ctx context.Context, c *Caller, m Method[H, Q, A], group id.Shard, q Q) (A, error) {
	answers, err := ScatterAny(ctx, c, m, []id.Shard{group}, q)
	if err != nil {
		var none A
		return none, err
	}
	return answers[0], nil
}

// ScatterAny is Scatter for reads that any replica may answer. It sends each member one request, for all
// groups that it asks there.
func ScatterAny[H, Q, A any](ctx context.Context, c *Caller, m Method[H, Q, A], groups []id.Shard, q Q) ([]A, error) {
	r := reads[H, Q, A]{c: c, m: m, q: q, answers: make([]A, len(groups)), parts: make([]part, len(groups)), left: len(groups)}
	r.ended = make(chan ended[A], len(groups)*(readTries+1))
	all := make([]int, len(groups))
	for i, group := range groups {
		r.parts[i].group, all[i] = group, i
	}
	c.hedges.earn(len(groups))
	return r.answers, r.run(ctx, all)
}

// reads is a read of several groups.
type reads[H, Q, A any] struct {
	c       *Caller
	m       Method[H, Q, A]
	q       Q
	answers []A
	parts   []part // of answers
	left    int    // parts without an answer
	tries   []*try
	ended   chan ended[A] // has room for all tries
}

// part is the read of one group. It asks one replica, and perhaps a second one.
type part struct {
	group id.Shard
	asked []id.Member
	tries []*try
	open  int // tries that have not ended
	done  bool
	err   error // of the last try
}

// try is a request to one member for some parts, or to the leader of one part.
type try struct {
	member id.Member // "": the leader
	parts  []int
	groups []id.Shard // of parts
	hedge  bool
	began  time.Time
	left   int // parts without an answer
	end    context.CancelFunc
}

// ended is a try that has ended.
type ended[A any] struct {
	*try
	replies []reply[A] // one for each part
}

// run asks for all parts and waits for their answers.
func (r *reads[H, Q, A]) run(ctx context.Context, all []int) error {
	defer func() {
		for _, t := range r.tries {
			t.end()
		}
	}()
	if _, err := r.ask(ctx, all, false); err != nil {
		return err
	}
	usual := r.c.hedges.usual(r.m.Name)
	late := time.NewTimer(usual)
	defer late.Stop()
	for r.left > 0 {
		select {
		case e := <-r.ended:
			if err := r.take(ctx, e); err != nil {
				return err
			}
		case <-late.C:
			if r.hedge(ctx, usual) {
				late.Reset(silenceMax)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// ask asks one more replica for each of parts, or its leader if there is none and the parts are not asked
// as hedges. It returns how many replicas were found.
func (r *reads[H, Q, A]) ask(ctx context.Context, parts []int, hedge bool) (found int, err error) {
	tries := map[id.Member]*try{}
	first := len(r.tries)
	for _, i := range parts {
		p := &r.parts[i]
		member, ok := r.c.spread.choose(p.group, p.asked...)
		if !ok {
			if hedge {
				continue
			}
			if failed := r.askLeader(ctx, i); failed != nil {
				err = failed
			}
			continue
		}
		found++
		p.asked = append(p.asked, member)
		t := tries[member]
		if t == nil || len(t.parts) == groupsMax || member == r.c.peers.Self() {
			t = &try{member: member, hedge: hedge}
			tries[member], r.tries = t, append(r.tries, t)
		}
		r.join(t, i)
	}
	for _, t := range r.tries[first:] {
		if t.member != "" {
			r.start(ctx, t)
		}
	}
	return found, err
}

// join adds a part to a try.
func (r *reads[H, Q, A]) join(t *try, i int) {
	p := &r.parts[i]
	t.parts, t.groups = append(t.parts, i), append(t.groups, p.group)
	t.left++
	p.tries = append(p.tries, t)
	p.open++
}

// start sends a try, in a goroutine that the Caller owns.
func (r *reads[H, Q, A]) start(ctx context.Context, t *try) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	t.end, t.began = cancel, time.Now()
	r.c.read(func() {
		defer cancel()
		r.ended <- ended[A]{t, tryReplica(ctx, r.c, r.m, t.groups, t.member, r.q)}
	})
}

// askLeader asks the leader of a part, unless a replica has given an error that the leader would have too.
func (r *reads[H, Q, A]) askLeader(ctx context.Context, i int) error {
	p := &r.parts[i]
	if p.err != nil && !Again(p.err) {
		return p.err
	}
	t := &try{}
	r.join(t, i)
	r.tries = append(r.tries, t)
	ctx, cancel := context.WithCancel(ctx)
	t.end = cancel
	r.c.read(func() {
		defer cancel()
		a, err := CallLeader(ctx, r.c, r.m, p.group, r.q)
		r.ended <- ended[A]{t, []reply[A]{{a, err}}}
	})
	return nil
}

// take takes the replies of a try. Groups that the try has not reached are asked elsewhere, together again.
func (r *reads[H, Q, A]) take(ctx context.Context, e ended[A]) error {
	var again []int
	for n, i := range e.parts {
		p, got := &r.parts[i], e.replies[n]
		if p.open--; p.done {
			continue
		}
		if got.err == nil {
			r.answers[i] = got.a
			if r.finish(p); e.hedge {
				r.c.meter.HedgeWon()
			}
			if e.member != "" { // the replica that answers tells what is usual: the other one may have a fault
				r.c.hedges.took(r.m.Name, time.Since(e.began))
			}
			continue
		}
		if ctx.Err() != nil || KindOf(got.err) != 0 && KindOf(got.err) != Unavailable || e.member == "" {
			return got.err
		}
		if p.err = got.err; p.open > 0 {
			continue
		}
		if len(p.asked) < readTries && mayHaveOthers(p.err) {
			again = append(again, i)
		} else if err := r.askLeader(ctx, i); err != nil {
			return err
		}
	}
	_, err := r.ask(ctx, again, false)
	return err
}

// mayHaveOthers reports whether another replica than the one that gave err may have an answer, so that
// the leader need not be asked.
func mayHaveOthers(err error) bool {
	_, noLeader := errors.AsType[*raftfsm.NotLeaderError](err)
	return !noLeader && KindOf(err) == 0
}

// finish ends the tries that no other part waits for.
func (r *reads[H, Q, A]) finish(p *part) {
	p.done = true
	r.left--
	for _, t := range p.tries {
		if t.left--; t.left == 0 {
			t.end()
		}
	}
}

// hedge asks a second replica for the parts that are late. It reports whether some have to wait.
func (r *reads[H, Q, A]) hedge(ctx context.Context, usual time.Duration) (wait bool) {
	var parts []int
	judged := map[*try]bool{}
	for i := range r.parts {
		p := &r.parts[i]
		if p.done || len(p.asked) != 1 || len(p.tries) != 1 {
			continue
		}
		t := p.tries[0]
		if !judged[t] && r.c.spread.late(t.member, usual) {
			t.end = func() {} // its answer shows that the member is only slow
		}
		judged[t] = true
		if !r.c.spread.quiet(t.member, silenceMax) && !r.c.hedges.spend() {
			wait = true
			continue
		}
		parts = append(parts, i)
	}
	found, _ := r.ask(ctx, parts, true)
	for range found {
		r.c.meter.Hedged()
	}
	return wait
}

// tryReplica tries m once at member, which choose has returned for each of groups. It returns a reply for
// each of them.
func tryReplica[H, Q, A any](ctx context.Context, c *Caller, m Method[H, Q, A], groups []id.Shard, member id.Member, q Q) []reply[A] {
	try, cancel := context.WithTimeout(ctx, attemptMax)
	defer cancel()
	silent := time.AfterFunc(silenceMax, func() {
		if c.spread.silent(member) {
			cancel()
		}
	})
	defer silent.Stop()
	replies := callGroups(try, c, m, groups, member, q)
	for i := range replies {
		err := replies[i].err
		if err != nil && try.Err() != nil && ctx.Err() == nil {
			err = errSlow
			replies[i].err = err
		}
		out := answered
		switch {
		case err != nil && ctx.Err() != nil:
			out = abandoned
		case errors.Is(err, errSlow):
			out = slow
		case Again(err):
			out = failed
		}
		c.spread.end(member, out)
	}
	return replies
}
