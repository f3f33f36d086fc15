package traffic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	// mergersAtOnce is the number of clients that merge subjects. Each pair is looked at by
	// pairSeekers more clients, each of which searches every pairLook.
	mergersAtOnce = 2
	pairSeekers   = 2
	pairLook      = 100 * time.Millisecond
	// lateMost is the longest time from the start of a merge until its source gets another event.
	lateMost = 6 * time.Second
	// Of leftOf merges, one is left by its client, at the latest after leftMost.
	leftOf   = 2
	leftMost = 3 * time.Second
	// staysFor is how long a pair is searched for after the answer to its merge.
	staysFor = 500 * time.Millisecond
)

// pair has two subjects, of which the source is merged into the target.
type pair struct {
	worker         int
	target, source string
	badges         [2]string // external ids of the target and the source; empty for none
	faces          []pairFace
	key            string // the merge's Idempotency-Key

	call, end time.Duration // from the first request for the merge until its end was known; 0 for none
	left      bool          // its client did not wait for an answer

	// The mutex of the Traffic guards ids, the event with a face by subject and face, and history,
	// which is judged when it is known whether the merge ended.
	ids     map[[2]string]string
	history []Paired
}

// pairFace is a face of a pair.
type pairFace struct {
	face, tag string
	at        where // where it was registered; nowhere if the source was gone by then
}

// pairing is the part of the clients that merges subjects.
type pairing struct{ reader }

// run merges one pair after the other until stop ends.
func (t pairing) run(stop, give context.Context, worker int, seed uint64) {
	r := mrand.New(mrand.NewPCG(seed, uint64(worker)))
	for n := 0; stop.Err() == nil; n++ {
		if err := t.one(give, r, worker, n); err != nil {
			t.fail(err.Error())
		}
		pause(stop, t.options.Pace)
	}
}

// one registers a pair and merges it while others search for its faces.
func (t pairing) one(ctx context.Context, r *mrand.Rand, worker, n int) error {
	p, late, err := t.pair(ctx, r, worker, n)
	if err != nil {
		return err
	}
	seeking, stop := context.WithCancel(ctx)
	defer stop()
	var seekers, writer sync.WaitGroup
	for s := range pairSeekers {
		faces := append(slices.Clone(p.faces), late)
		seekers.Go(func() { t.seekAll(seeking, ctx, p, worker+1+s, faces) })
	}
	wait := time.Duration(r.Int64N(int64(lateMost)))
	var failed error
	writer.Go(func() {
		pause(ctx, wait)
		var subject string
		if subject, failed = t.enrolFace(ctx, p, n, p.source, late); subject == "" {
			late.at = nowhere
		}
	})
	err = t.merge(ctx, r, p, n)
	writer.Wait()
	pause(ctx, staysFor)
	stop()
	seekers.Wait()
	p.faces = append(p.faces, late)
	t.mu.Lock()
	t.pairs = append(t.pairs, p)
	t.mu.Unlock()
	if p.end != 0 {
		defer t.judge(p)
		t.moved(p)
	}
	if err = errors.Join(err, failed); err != nil || p.end == 0 {
		return err
	}
	if err := t.check(ctx, p, n); err != nil {
		return err
	}
	return t.after(ctx, r, p, n)
}

// pair registers a pair of subjects. late is a face that the source gets later.
func (t pairing) pair(ctx context.Context, r *mrand.Rand, worker, n int) (p *pair, late pairFace, err error) {
	name := fmt.Sprintf("pair-%d-%d", worker, n)
	p = &pair{worker: worker, key: newKey(), ids: map[[2]string]string{}}
	face := func(at where, which string) pairFace {
		f := pairFace{face: name + "-" + which, at: at}
		if r.IntN(2) == 0 {
			f.tag = tags[r.IntN(len(tags))]
		}
		return f
	}
	for i, subject := range []*string{&p.target, &p.source} {
		at := []where{onTarget, onSource}[i]
		if r.IntN(2) == 0 {
			p.badges[i] = fmt.Sprintf("%s-%s", name, at)
		}
		for _, f := range []pairFace{face(at, string(at)), face(at, "second-"+string(at))}[:1+r.IntN(2)] {
			if *subject, err = t.enrolFace(ctx, p, n, *subject, f); err != nil {
				return p, late, err
			}
			p.faces = append(p.faces, f)
		}
	}
	return p, face(onSource, "late"), nil
}

// enrolFace registers a face of a pair: for a subject, or with a new one if subject is empty. It
// returns the subject, or "" if there is no such subject any more.
func (t pairing) enrolFace(ctx context.Context, p *pair, first int, subject string, f pairFace) (string, error) {
	o := Paired{Worker: p.worker, Face: f.face, Kind: enrol, Where: f.at, Call: t.Now()}
	named := Named{Worker: p.worker, Kind: enrol, Call: o.Call}
	r := Request{Method: http.MethodPost, Target: "/v1.1/subjects", Key: newKey()}
	body := t.options.body(plan{face: f.face, tag: f.tag, call: o.Call})
	if r.Body = body; subject != "" {
		r.Target += "/" + subject + "/events"
	} else if named.Badge = p.badge(f.at); named.Badge != "" {
		body["externalId"] = named.Badge
	}
	a, err := t.do(ctx, t.big, first, r)
	if err != nil {
		return "", err
	}
	if a.Status == http.StatusNotFound && subject != "" {
		return "", nil
	}
	var m made
	if err := json.Unmarshal(a.Body, &m); err != nil || a.Status != http.StatusCreated || m.ID == "" || subject != "" && m.ID != subject {
		return "", fmt.Errorf("register %s of a merge: %d %s: %w", f.face, a.Status, a.Body, errAnswer)
	}
	o.End, o.Node = t.Now(), a.Node
	if named.Badge != "" {
		named.Subject, named.Node = m.ID, a.Node
		t.noteNamed(named)
	}
	t.notePaired(p, o)
	return m.ID, t.is(p, f, m.ID, m.EventID)
}

// badge returns the external id of a subject of the pair, or "".
func (p *pair) badge(of where) string {
	if of == onTarget {
		return p.badges[0]
	}
	return p.badges[1]
}

// is returns an error unless each answer so far gave a face of a subject the same event.
func (t pairing) is(p *pair, f pairFace, subject, event string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := [2]string{subject, f.face}
	if before, known := p.ids[at]; known && before != event {
		return fmt.Errorf("%s of a merge has the event %s of subject %s, and had %s: %w", f.face, event, subject, before, errAnswer)
	}
	p.ids[at] = event
	return nil
}

// notePaired adds an operation to the history of a pair.
func (t pairing) notePaired(p *pair, o Paired) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p.history = append(p.history, o)
	t.Counts["pair "+string(o.Kind)]++
}

// judge hands the history of a pair over for the judgement.
func (t pairing) judge(p *pair) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Paired, p.history = append(t.Paired, p.history...), nil
}

// seekAll searches for one of the faces after the other until stop ends.
func (t pairing) seekAll(stop, ctx context.Context, p *pair, worker int, faces []pairFace) {
	for n := worker; stop.Err() == nil; n++ {
		if err := t.seek(ctx, p, faces[n%len(faces)], plan{worker: worker, first: n}); err != nil {
			t.fail(err.Error())
		}
		pause(stop, pairLook+t.options.Pace)
	}
}

// seek searches for a face of a pair, every second time with its tag, and notes where it is.
func (t pairing) seek(ctx context.Context, p *pair, f pairFace, by plan) error {
	by.face, by.tag, by.call = f.face, anyTag, t.Now()
	if f.tag != "" && by.call%2 == 0 {
		by.tag = f.tag
	}
	found, seen, err := t.search(ctx, by)
	if err != nil {
		return err
	}
	o := Paired{Worker: by.worker, Face: f.face, Kind: find, Call: found.Call, End: found.End, Node: found.Node}
	for subject, list := range seen {
		if subject != p.source && subject != p.target || len(list) != 1 {
			return fmt.Errorf("a search for %s of the merge of %s into %s found %v: %w", f.face, p.source, p.target, seen, errAnswer)
		}
		if err := t.is(p, f, subject, list[0]); err != nil {
			return err
		}
	}
	switch _, source := seen[p.source]; {
	case len(seen) == 2:
		o.Where = onBoth
	case source:
		o.Where = onSource
	case len(seen) == 1:
		o.Where = onTarget
	}
	t.notePaired(p, o)
	return nil
}

// request returns the request for the merge.
func (p *pair) request() Request {
	return Request{Method: http.MethodPost, Target: "/v1.1/subjects/" + p.target + "/merge", Body: map[string]any{"source": p.source}, Key: p.key}
}

// merge merges a pair. One client in leftOf leaves without an answer.
func (t pairing) merge(ctx context.Context, r *mrand.Rand, p *pair, first int) error {
	of := ctx
	if p.left = r.IntN(leftOf) == 0; p.left {
		soon, leave := context.WithTimeout(ctx, time.Duration(r.Int64N(int64(leftMost))))
		defer leave()
		of = soon
	}
	p.call = t.Now()
	// A merge takes nearly as long as a try may, so a try without an answer is no failure.
	a, err := insist(of, t.big, first, p.request(), t.Now, func(Failure) {})
	if p.left = p.left && err != nil; p.left {
		return nil
	}
	if err == nil {
		err = t.answered(p, a)
	}
	if err == nil {
		p.end = t.Now()
	}
	return err
}

// answered returns an error unless the answer to a merge is that it has ended.
func (t pairing) answered(p *pair, a Answer) error {
	var m made
	if err := json.Unmarshal(a.Body, &m); err != nil || a.Status != http.StatusOK || m.ID != p.target {
		return fmt.Errorf("merge %s into %s: %d %s: %w", p.source, p.target, a.Status, a.Body, errAnswer)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Counts["merge"]++
	return nil
}

// moved notes that a merge has ended.
func (t pairing) moved(p *pair) {
	if p.badges[1] != "" {
		t.noteNamed(Named{Worker: p.worker, Badge: p.badges[1], Kind: remove, Subject: p.source, Call: p.call})
	}
	for _, f := range p.faces {
		if f.at == onSource {
			step := Paired{Worker: -1, Face: f.face, Kind: copied, Call: p.call, End: p.end}
			t.notePaired(p, step)
			step.Kind = cleared
			t.notePaired(p, step)
		}
	}
}
