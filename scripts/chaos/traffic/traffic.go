package traffic

import (
	"context"
	"crypto/rand"
	"encoding/hex"
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
	hotPeople  = 16 // people that all workers share
	subjectMax = 12 // live subjects of one person
	eventMax   = 4  // events of one subject
	photos     = 3  // faces of one person that are unlike
	listLength = 1000
)

// tags are the tags of the gallery. A face may also have none ("").
var tags = []string{"blue", "red"}

// subject is a subject as the clients know it.
type subject struct {
	id     string
	person string
	events []string
	ending bool // a worker removes it
}

// Ack is an acknowledged write.
type Ack struct {
	At    time.Duration // since the beginning
	Shard int
}

// Reading is the time that a search took its client, all tries together.
type Reading struct {
	Call, End time.Duration
	Refused   int // tries that got 5xx or 429
}

// plan is an operation that a worker is about to carry out.
type plan struct {
	worker, first int
	person        string
	face, tag     string
	subject       *subject // nil if the operation has none
	event         string
	call          time.Duration
}

// Run runs the clients until stop ends. When give ends, they give up requests that have
// no answer. seed determines the clients' choices.
func (t *Traffic) Run(stop, give context.Context, workers int, seed uint64) {
	var work sync.WaitGroup
	for w := range workers {
		work.Go(func() {
			r := mrand.New(mrand.NewPCG(seed, uint64(w)))
			for i := 0; stop.Err() == nil; i++ {
				if err := t.one(give, r, w, i); err != nil {
					t.fail(err.Error())
				}
				pause(stop, t.options.Pace)
			}
		})
	}
	work.Go(func() { t.watch(stop, give) })
	work.Go(func() { t.briefly(stop, give) })
	if len(t.options.Photos) == 0 {
		for m := range mergersAtOnce {
			work.Go(func() { pairing{reader{t}}.run(stop, give, workers+m*(1+pairSeekers), seed) })
		}
	}
	work.Wait()
}

// hotForm is the format of the names of people that all workers share.
const hotForm = "hot-%d"

func hot(n int) string { return fmt.Sprintf(hotForm, n) }

// one carries out one operation of a worker.
func (t *Traffic) one(ctx context.Context, r *mrand.Rand, worker, i int) error {
	person := hot(r.IntN(t.options.crowd()))
	if r.IntN(3) == 0 && len(t.options.Photos) == 0 {
		person = fmt.Sprintf("person-%d-%d", worker, i/24)
	}
	p := t.look(worker, r.IntN(len(t.big.Nodes())), person)
	if p.face = person + "-0"; len(t.options.Photos) == 0 {
		p.face = fmt.Sprintf("%s-%d", person, r.IntN(photos))
	}
	if p.tag = ""; r.IntN(2) == 0 {
		p.tag = tags[r.IntN(len(tags))]
	}
	p.subject, p.event = t.choose(r, person)
	kinds := []struct {
		share int
		do    func(context.Context, plan) error
		alone bool // it needs no subject
	}{
		{17, t.enrol, true},
		{3, t.echo, true},
		{8, t.add, false},
		{6, t.renew, false},
		{6, t.change, false},
		{5, t.drop, false},
		{5, t.remove, false},
		{10, t.verify, false},
		{6, t.events, false},
		{20, t.find, true},
		{3, func(ctx context.Context, p plan) error { return fleeting{t}.meet(ctx, r, p) }, true},
		{6, func(ctx context.Context, p plan) error { return t.name(ctx, r, p) }, true},
		{5, func(ctx context.Context, p plan) error { return t.crowd(ctx, r, p.first) }, true},
	}
	n := r.IntN(100)
	for _, k := range kinds {
		if n -= k.share; n >= 0 {
			continue
		}
		if k.alone || p.subject != nil {
			return k.do(ctx, p)
		}
		break
	}
	if r.IntN(2) == 0 && p.tag != "" {
		p.tag = anyTag
	}
	return t.find(ctx, p)
}

// look returns a plan to search for a person with any tag.
func (t *Traffic) look(worker, first int, person string) plan {
	return plan{worker: worker, first: first, person: person, face: person + "-0", tag: anyTag, call: t.Now()}
}

// choose returns one of a person's subjects and one of its events.
func (t *Traffic) choose(r *mrand.Rand, person string) (*subject, string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := t.people[person]
	if len(list) == 0 {
		return nil, ""
	}
	s := list[r.IntN(len(list))]
	if len(s.events) == 0 {
		return s, ""
	}
	return s, s.events[r.IntN(len(s.events))]
}

func (t *Traffic) fail(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Wrong[text]++
}

func newKey() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// errAnswer is returned for an answer that breaks the interface's promises.
var errAnswer = errors.New("not what was asked for")

// made is the answer to a registration or an update.
type made struct{ ID, EventID string }

func (m made) String() string { return m.ID + ", " + m.EventID }

// write carries out the write of a plan and adds it to the history. status is the
// status of a success.
func (t *Traffic) write(ctx context.Context, p plan, o Operation, r Request, status int) (Operation, error) {
	r.Key = newKey()
	a, err := t.twice(ctx, p, r)
	if err != nil {
		return o, err
	}
	o.Worker, o.Call, o.End, o.Node = p.worker, p.call, t.Now(), a.Node
	var m made
	switch {
	case a.Status == http.StatusNotFound && o.Kind != enrol:
		o.Missing = true
		o.Unsure = a.tries > 0 && (o.Kind == drop || o.Kind == remove)
	case a.Status != status:
		return o, fmt.Errorf("%s: %d %s", o.Kind, a.Status, a.Body)
	case r.Body != nil:
		if err := json.Unmarshal(a.Body, &m); err != nil || m.ID == "" || m.EventID == "" ||
			o.Subject != "" && m.ID != o.Subject || o.Event != "" && m.EventID != o.Event {
			return o, fmt.Errorf("%s of %s, %s: %s: %w", o.Kind, o.Subject, o.Event, a.Body, errors.Join(err, errAnswer))
		}
		o.Subject, o.Event = m.ID, m.EventID
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.History = append(t.History, o)
	t.Counts[string(o.Kind)]++
	if o.Kind == enrol {
		t.keep(r, m)
	}
	if !o.Missing {
		t.Acked = append(t.Acked, Ack{o.End, shardOf(o.Subject)})
	}
	return o, nil
}

// twice sends every eighth POST to two nodes at once. Both must give the same answer.
func (t *Traffic) twice(ctx context.Context, p plan, r Request) (Answer, error) {
	if r.Method != http.MethodPost || p.call%8 != 0 {
		return t.do(ctx, t.big, p.first, r)
	}
	var twin Answer
	var failed error
	var other sync.WaitGroup
	other.Go(func() { twin, failed = t.do(ctx, t.big, p.first+1, r) })
	a, err := t.do(ctx, t.big, p.first, r)
	other.Wait()
	if err = errors.Join(err, failed); err != nil {
		return a, err
	}
	if same, err := alike(a, twin); err != nil || !same {
		return a, fmt.Errorf("the same write at two nodes at once: %d %s and %d %s: %w", a.Status, a.Body, twin.Status, twin.Body, errors.Join(err, errAnswer))
	}
	return a, nil
}

// alike reports whether two answers name the same subject and event.
func alike(a, b Answer) (bool, error) {
	if a.Status != b.Status || a.Status >= http.StatusBadRequest {
		return a.Status == b.Status, nil
	}
	var one, two made
	err := errors.Join(json.Unmarshal(a.Body, &one), json.Unmarshal(b.Body, &two))
	return one == two, err
}

// echo sends an earlier enrolment again, with its Idempotency-Key. The answer must be
// the same as before and have no effect, even if the subject was changed or removed
// meanwhile.
func (t *Traffic) echo(ctx context.Context, p plan) error {
	t.mu.Lock()
	if len(t.sent) == 0 {
		t.mu.Unlock()
		return t.enrol(ctx, p)
	}
	before := t.sent[int(p.call)%len(t.sent)]
	t.mu.Unlock()
	a, err := t.do(ctx, t.big, p.first, before.request)
	if err != nil {
		return err
	}
	var m made
	if err := json.Unmarshal(a.Body, &m); err != nil || a.Status != http.StatusCreated || m != before.answer {
		return fmt.Errorf("an enrolment that made %s is sent again: %d %s: %w", before.answer, a.Status, a.Body, errors.Join(err, errAnswer))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Counts["echo"]++
	return nil
}

// sentMax is the most enrolments kept for echo.
const sentMax = 256

// sent is an enrolment that has an answer.
type sent struct {
	request Request
	answer  made
}

// keep stores an enrolment for echo. The caller holds mu.
func (t *Traffic) keep(r Request, answer made) {
	s := sent{r, answer}
	if len(t.sent) < sentMax {
		t.sent = append(t.sent, s)
		return
	}
	t.sent[int(t.last)%sentMax] = s
}

func (t *Traffic) enrol(ctx context.Context, p plan) error {
	t.mu.Lock()
	full := len(t.people[p.person]) >= subjectMax
	t.mu.Unlock()
	if full && p.subject != nil {
		return t.remove(ctx, p)
	}
	o, err := t.write(ctx, p, Operation{Kind: enrol, Face: p.face, Tag: p.tag}, Request{Method: http.MethodPost, Target: "/v1.1/subjects", Body: t.options.body(p)}, http.StatusCreated)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.people[p.person] = append(t.people[p.person], &subject{id: o.Subject, person: p.person, events: []string{o.Event}})
	return nil
}

func (t *Traffic) add(ctx context.Context, p plan) error {
	t.mu.Lock()
	full := len(p.subject.events) >= eventMax
	t.mu.Unlock()
	if full {
		return t.drop(ctx, p)
	}
	o, err := t.write(ctx, p, Operation{Kind: add, Subject: p.subject.id, Face: p.face, Tag: p.tag},
		Request{Method: http.MethodPost, Target: "/v1.1/subjects/" + p.subject.id + "/events", Body: t.options.body(p)}, http.StatusCreated)
	if err != nil || o.Missing {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	p.subject.events = append(p.subject.events, o.Event)
	return nil
}

func (t *Traffic) renew(ctx context.Context, p plan) error {
	if p.tag == "" {
		p.tag = keepTag
	}
	_, err := t.write(ctx, p, Operation{Kind: renew, Subject: p.subject.id, Face: p.face, Tag: p.tag},
		Request{Method: http.MethodPut, Target: "/v1.1/subjects/" + p.subject.id, Body: t.options.body(p)}, http.StatusOK)
	return err
}

func (t *Traffic) change(ctx context.Context, p plan) error {
	if p.event == "" {
		return nil
	}
	_, err := t.write(ctx, p, Operation{Kind: change, Subject: p.subject.id, Event: p.event, Face: p.face, Tag: p.tag},
		Request{Method: http.MethodPut, Target: "/v1.1/subjects/" + p.subject.id + "/events/" + p.event, Body: t.options.body(p)}, http.StatusOK)
	return err
}

func (t *Traffic) drop(ctx context.Context, p plan) error {
	if p.event == "" {
		return nil
	}
	_, err := t.write(ctx, p, Operation{Kind: drop, Subject: p.subject.id, Event: p.event},
		Request{Method: http.MethodDelete, Target: "/v1.1/subjects/" + p.subject.id + "/events/" + p.event}, http.StatusNoContent)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	p.subject.events = slices.DeleteFunc(p.subject.events, func(e string) bool { return e == p.event })
	if len(p.subject.events) == 0 {
		t.forget(p.subject)
	}
	return nil
}

func (t *Traffic) remove(ctx context.Context, p plan) error {
	t.mu.Lock()
	ending := p.subject.ending
	p.subject.ending = true
	t.mu.Unlock()
	if ending {
		return t.find(ctx, p)
	}
	_, err := t.write(ctx, p, Operation{Kind: remove, Subject: p.subject.id},
		Request{Method: http.MethodDelete, Target: "/v1.1/subjects/" + p.subject.id}, http.StatusNoContent)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget(p.subject)
	return err
}

// count counts the entries of the small gallery.
func (t *Traffic) count(ctx context.Context, first int) error {
	_, total, err := t.list(ctx, t.small, first)
	if err == nil {
		err = crowded(total, SmallSize)
	}
	return err
}
