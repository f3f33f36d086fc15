package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
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
	hotPeople  = 24 // that all workers share
	subjectMax = 4  // live subjects of one person
	eventMax   = 4  // events of one subject
	photos     = 3  // faces of one person that are unlike
	smallSize  = 40 // slots of the small gallery
	listLength = 1000
)

// tags are the gallery's; "" stands for none.
var tags = []string{"blue", "red"}

// traffic is the clients and what they saw.
type traffic struct {
	big, small *client
	start      time.Time

	// mu guards the rest.
	mu      sync.Mutex
	history []operation
	// people are the subjects of each person that may be live: from the answer to the
	// enrolment on until the subject is known to be gone.
	people map[string][]*subject
	counts map[string]int
	acked  []ack
	reads  []reading
	wrong  map[string]int
	// refused counts answers of 5xx and 429 to tries.
	refused int
}

// subject is a subject as clients know it.
type subject struct {
	id     string
	person string
	events []string
	ending bool // somebody removes it
}

// ack is an acknowledged write.
type ack struct {
	at    time.Duration // since the beginning
	shard int
}

// reading is how long a search took its client, all tries together.
type reading struct {
	call, end time.Duration
	refused   int // tries that got 5xx or 429
}

// plan is an operation that is about to be done.
type plan struct {
	worker, first int
	person        string
	face, tag     string
	subject       *subject // nil where there is none
	event         string
	call          time.Duration
}

func newTraffic(big, small *client) *traffic {
	return &traffic{
		big: big, small: small, start: time.Now(),
		people: map[string][]*subject{}, counts: map[string]int{}, wrong: map[string]int{},
	}
}

// run works until stop ends; give ends what has no answer by then.
func (t *traffic) run(stop, give context.Context, workers int, seed uint64) {
	var work sync.WaitGroup
	for w := range workers {
		work.Go(func() {
			r := mrand.New(mrand.NewPCG(seed, uint64(w)))
			for i := 0; stop.Err() == nil; i++ {
				if err := t.one(give, r, w, i); err != nil {
					t.fail(err.Error())
				}
			}
		})
	}
	work.Go(func() {
		for stop.Err() == nil {
			t.count(give)
			pause(stop, 2*time.Second)
		}
	})
	work.Wait()
}

func hot(n int) string { return fmt.Sprintf("hot-%d", n) }

// one does one operation of a worker.
func (t *traffic) one(ctx context.Context, r *mrand.Rand, worker, i int) error {
	person := hot(r.IntN(hotPeople))
	if r.IntN(2) == 0 {
		person = fmt.Sprintf("person-%d-%d", worker, i/8)
	}
	p := t.look(worker, r.IntN(len(t.big.cluster.members())), person)
	p.face = fmt.Sprintf("%s-%d", person, r.IntN(photos))
	if p.tag = ""; r.IntN(2) == 0 {
		p.tag = tags[r.IntN(len(tags))]
	}
	p.subject, p.event = t.choose(r, person)
	kinds := []struct {
		share int
		do    func(context.Context, plan) error
		alone bool // it needs no subject
	}{
		{20, t.enrol, true},
		{8, t.add, false},
		{6, t.renew, false},
		{6, t.change, false},
		{6, t.drop, false},
		{6, t.remove, false},
		{10, t.verify, false},
		{6, t.events, false},
		{27, t.find, true},
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

// look is a plan to search for a person, whatever the tag.
func (t *traffic) look(worker, first int, person string) plan {
	return plan{worker: worker, first: first, person: person, face: person + "-0", tag: anyTag, call: time.Since(t.start)}
}

// choose gives one of a person's subjects and one of its events.
func (t *traffic) choose(r *mrand.Rand, person string) (*subject, string) {
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

func (t *traffic) fail(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wrong[text]++
}

func image(face string) string { return base64.StdEncoding.EncodeToString([]byte(face)) }

func newKey() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// body is a face with its tag, as writes carry it.
func (p plan) body() map[string]any {
	m := map[string]any{"face": image(p.face)}
	switch p.tag {
	case "":
		m["tags"] = []string{}
	case keepTag:
	default:
		m["tags"] = []string{p.tag}
	}
	return m
}

// errAnswer says that an answer is not what the interface promises.
var errAnswer = errors.New("not what was asked for")

// made is the answer to a registration or an update.
type made struct{ ID, EventID string }

// write does a write of a plan and notes it. Status is what success answers with.
func (t *traffic) write(ctx context.Context, p plan, o operation, r request, status int) (operation, error) {
	r.key = newKey()
	a, err := t.big.do(ctx, p.first, r)
	if err != nil {
		return o, err
	}
	o.Worker, o.Call, o.End, o.Node = p.worker, p.call, time.Since(t.start), a.node
	var m made
	switch {
	case a.status == http.StatusNotFound && o.Kind != enrol:
		o.Missing = true
		o.Unsure = a.tries > 0 && (o.Kind == drop || o.Kind == remove)
	case a.status != status:
		return o, fmt.Errorf("%s: %d %s", o.Kind, a.status, a.body)
	case r.body != nil:
		if err := json.Unmarshal(a.body, &m); err != nil || m.ID == "" || m.EventID == "" ||
			o.Subject != "" && m.ID != o.Subject || o.Event != "" && m.EventID != o.Event {
			return o, fmt.Errorf("%s of %s, %s: %s: %w", o.Kind, o.Subject, o.Event, a.body, errors.Join(err, errAnswer))
		}
		o.Subject, o.Event = m.ID, m.EventID
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.history = append(t.history, o)
	t.counts[string(o.Kind)]++
	t.refused += a.refused
	if !o.Missing {
		t.acked = append(t.acked, ack{o.End, shardOf(o.Subject)})
	}
	return o, nil
}

func (t *traffic) enrol(ctx context.Context, p plan) error {
	t.mu.Lock()
	full := len(t.people[p.person]) >= subjectMax
	t.mu.Unlock()
	if full && p.subject != nil {
		return t.remove(ctx, p)
	}
	o, err := t.write(ctx, p, operation{Kind: enrol, Face: p.face, Tag: p.tag}, request{method: http.MethodPost, target: "/v1.1/subjects", body: p.body()}, http.StatusCreated)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.people[p.person] = append(t.people[p.person], &subject{id: o.Subject, person: p.person, events: []string{o.Event}})
	return nil
}

func (t *traffic) add(ctx context.Context, p plan) error {
	t.mu.Lock()
	full := len(p.subject.events) >= eventMax
	t.mu.Unlock()
	if full {
		return t.drop(ctx, p)
	}
	o, err := t.write(ctx, p, operation{Kind: add, Subject: p.subject.id, Face: p.face, Tag: p.tag},
		request{method: http.MethodPost, target: "/v1.1/subjects/" + p.subject.id + "/events", body: p.body()}, http.StatusCreated)
	if err != nil || o.Missing {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	p.subject.events = append(p.subject.events, o.Event)
	return nil
}

func (t *traffic) renew(ctx context.Context, p plan) error {
	if p.tag == "" {
		p.tag = keepTag
	}
	_, err := t.write(ctx, p, operation{Kind: renew, Subject: p.subject.id, Face: p.face, Tag: p.tag},
		request{method: http.MethodPut, target: "/v1.1/subjects/" + p.subject.id, body: p.body()}, http.StatusOK)
	return err
}

func (t *traffic) change(ctx context.Context, p plan) error {
	if p.event == "" {
		return nil
	}
	_, err := t.write(ctx, p, operation{Kind: change, Subject: p.subject.id, Event: p.event, Face: p.face, Tag: p.tag},
		request{method: http.MethodPut, target: "/v1.1/subjects/" + p.subject.id + "/events/" + p.event, body: p.body()}, http.StatusOK)
	return err
}

func (t *traffic) drop(ctx context.Context, p plan) error {
	if p.event == "" {
		return nil
	}
	_, err := t.write(ctx, p, operation{Kind: drop, Subject: p.subject.id, Event: p.event},
		request{method: http.MethodDelete, target: "/v1.1/subjects/" + p.subject.id + "/events/" + p.event}, http.StatusNoContent)
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

func (t *traffic) remove(ctx context.Context, p plan) error {
	t.mu.Lock()
	ending := p.subject.ending
	p.subject.ending = true
	t.mu.Unlock()
	if ending {
		return t.find(ctx, p)
	}
	_, err := t.write(ctx, p, operation{Kind: remove, Subject: p.subject.id},
		request{method: http.MethodDelete, target: "/v1.1/subjects/" + p.subject.id}, http.StatusNoContent)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget(p.subject)
	return err
}

// count counts the entries of the small gallery.
func (t *traffic) count(ctx context.Context) {
	_, total, err := t.small.list(ctx, 0)
	if err == nil {
		err = crowded(total, smallSize)
	}
	if err != nil {
		t.fail(err.Error())
	}
}
