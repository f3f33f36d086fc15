package main

import (
	"context"
	"encoding/json"
	"fmt"
	mrand "math/rand/v2"
	"net/http"
	"slices"
	"time"

	"facet/internal/id"
)

// found is the body of an answer to a search.
type found struct {
	Candidates []struct {
		ID     string
		Events []struct{ ID string }
	}
}

// find searches for a face.
func (t *traffic) find(ctx context.Context, p plan) error {
	body := map[string]any{"probe": image(p.face), "limit": 50}
	if p.tag == "" {
		p.tag = anyTag
	}
	if p.tag != anyTag {
		body["tags"] = []string{p.tag}
	}
	a, err := t.big.do(ctx, p.first, request{method: http.MethodPost, target: "/v1.1/face/search", body: body})
	if err != nil {
		return err
	}
	var f found
	if err := json.Unmarshal(a.body, &f); err != nil || a.status != http.StatusOK && a.status != http.StatusNotFound {
		return fmt.Errorf("search: %d %s", a.status, a.body)
	}
	seen := map[string][]string{}
	for _, c := range f.Candidates {
		if _, twice := seen[c.ID]; twice {
			return fmt.Errorf("search: %s is a candidate twice: %s", c.ID, a.body)
		}
		for _, e := range c.Events {
			seen[c.ID] = append(seen[c.ID], e.ID)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	o := operation{Worker: p.worker, Kind: find, Face: p.face, Tag: p.tag, Call: a.began.Sub(t.start), End: time.Since(t.start), Node: a.node}
	t.finds(p.person, seen, o)
	t.counts[string(find)]++
	t.refused += a.refused
	t.reads = append(t.reads, reading{p.call, o.End, a.refused})
	return nil
}

// finds notes a search as one reading of each subject of the person, and of each
// other that was found. mu is held. A subject that is not known yet by its
// enrolment's answer, or is gone by its removal's, may still be found.
func (t *traffic) finds(person string, seen map[string][]string, o operation) {
	for _, s := range t.people[person] {
		if _, ok := seen[s.id]; !ok {
			seen[s.id] = nil
		}
	}
	for subject, events := range seen {
		slices.Sort(events)
		o.Subject, o.Seen = subject, events
		t.history = append(t.history, o)
	}
}

// forget takes a subject that is gone out of what clients choose from. mu is held.
func (t *traffic) forget(s *subject) {
	t.people[s.person] = slices.DeleteFunc(t.people[s.person], func(o *subject) bool { return o == s })
	if len(t.people[s.person]) == 0 {
		delete(t.people, s.person)
	}
}

// note adds a reading of one subject to the history.
func (t *traffic) note(p plan, o operation, a answer) {
	o.Worker, o.Subject, o.Node = p.worker, p.subject.id, a.node
	o.Call, o.End = a.began.Sub(t.start), time.Since(t.start)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.history = append(t.history, o)
	t.counts[string(o.Kind)]++
	t.refused += a.refused
}

// verify compares a subject with a face.
func (t *traffic) verify(ctx context.Context, p plan) error {
	a, err := t.big.do(ctx, p.first, request{method: http.MethodPost, target: "/v1.1/face/verify", body: map[string]any{"id": p.subject.id, "probe": image(p.face)}})
	if err != nil {
		return err
	}
	if a.status != http.StatusOK && a.status != http.StatusNotFound {
		return fmt.Errorf("verify: %d %s", a.status, a.body)
	}
	t.note(p, operation{Kind: verify, Face: p.face, Tag: anyTag, Missing: a.status == http.StatusNotFound}, a)
	return nil
}

// events lists a subject's events.
func (t *traffic) events(ctx context.Context, p plan) error {
	a, err := t.big.do(ctx, p.first, request{method: http.MethodGet, target: "/v1.1/subjects/" + p.subject.id + "/events"})
	if err != nil {
		return err
	}
	var list struct{ Events []struct{ ID string } }
	if err := json.Unmarshal(a.body, &list); err != nil || a.status != http.StatusOK && a.status != http.StatusNotFound {
		return fmt.Errorf("events: %d %s", a.status, a.body)
	}
	o := operation{Kind: events}
	for _, e := range list.Events {
		o.Seen = append(o.Seen, e.ID)
	}
	slices.Sort(o.Seen)
	t.note(p, o, a)
	return nil
}

// crowd registers somebody in the small gallery, which is mostly full.
func (t *traffic) crowd(ctx context.Context, r *mrand.Rand, first int) error {
	key := newKey()
	a, err := t.small.do(ctx, first, request{method: http.MethodPost, target: "/v1.1/subjects", body: map[string]any{"face": image(key)}, key: key})
	if err != nil {
		return err
	}
	full := a.status == http.StatusBadRequest
	if a.status != http.StatusCreated && !full {
		return fmt.Errorf("enrol in the small gallery: %d %s", a.status, a.body)
	}
	t.mu.Lock()
	t.counts["small gallery"]++
	t.refused += a.refused
	t.mu.Unlock()
	var m made
	if full || r.IntN(3) == 0 || json.Unmarshal(a.body, &m) != nil {
		return nil
	}
	_, err = t.small.do(ctx, first, request{method: http.MethodDelete, target: "/v1.1/subjects/" + m.ID})
	return err
}

// list gives the active entries of a gallery, and how many entries there are.
func (c *client) list(ctx context.Context, first int) (active []entry, total int, err error) {
	for start := 0; start == 0 || start < total; start += listLength {
		a, err := c.do(ctx, first, request{method: http.MethodGet, target: fmt.Sprintf("/v1.1/subjects?start=%d&length=%d", start, listLength)})
		if err != nil {
			return nil, 0, err
		}
		var page struct {
			Subjects []struct{ ID, EventID, Status string }
			Total    int
		}
		if err := json.Unmarshal(a.body, &page); err != nil || a.status != http.StatusOK && a.status != http.StatusNotFound {
			return nil, 0, fmt.Errorf("list: %d %s", a.status, a.body)
		}
		for _, s := range page.Subjects {
			if s.Status == "A" {
				active = append(active, entry{s.ID, s.EventID})
			}
		}
		total = page.Total
	}
	return active, total, nil
}

// shardOf is the shard that a subject's id names.
func shardOf(subject string) int {
	u, err := id.Parse(subject)
	if err != nil {
		return -1
	}
	return int(u.Shard())
}
