package traffic

import (
	"context"
	"encoding/json"
	"fmt"
	mrand "math/rand/v2"
	"net/http"
	"slices"

	"facet/internal/id"
)

// found is the body of the answer to a search.
type found struct {
	Candidates []struct {
		ID     string
		Events []struct{ ID string }
	}
	Receipt *receipt
}

// reader has the readings that workers and mergers share.
type reader struct{ *Traffic }

// find searches for a face.
func (t *Traffic) find(ctx context.Context, p plan) error {
	if p.tag == "" {
		p.tag = anyTag
	}
	o, seen, err := reader{t}.search(ctx, p)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.finds(p.person, seen, o)
	t.Counts[string(find)]++
	return nil
}

// search searches for the face of p with its tag, and returns the events of each candidate. Every
// second search asks for a receipt.
func (t reader) search(ctx context.Context, p plan) (o Operation, seen map[string][]string, err error) {
	body := map[string]any{"probe": t.options.image(p.face), "limit": 50}
	if p.tag != anyTag {
		body["tags"] = []string{p.tag}
	}
	receipted := p.call%2 == 0
	if receipted {
		body["receipt"] = true
	}
	t.mu.Lock()
	before := t.receipts
	t.mu.Unlock()
	a, err := t.do(ctx, t.big, p.first, Request{Method: http.MethodPost, Target: "/v1.1/face/search", Body: body})
	if err != nil {
		return o, nil, err
	}
	var f found
	if err := json.Unmarshal(a.Body, &f); err != nil || a.Status != http.StatusOK && a.Status != http.StatusNotFound {
		return o, nil, fmt.Errorf("search: %d %s", a.Status, a.Body)
	}
	seen = map[string][]string{}
	for _, c := range f.Candidates {
		if _, twice := seen[c.ID]; twice {
			return o, nil, fmt.Errorf("search: %s is a candidate twice: %s", c.ID, a.Body)
		}
		for _, e := range c.Events {
			seen[c.ID] = append(seen[c.ID], e.ID)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if receipted {
		if t.receipts, err = t.receipts.with(f.Receipt, before); err != nil {
			return o, nil, fmt.Errorf("search at %s: %w", a.Node, err)
		}
		t.Counts["receipt"]++
	}
	o = Operation{Worker: p.worker, Kind: find, Face: p.face, Tag: p.tag, Call: a.began, End: t.tick(), Node: a.Node}
	t.Reads = append(t.Reads, Reading{p.call, o.End, a.refused})
	return o, seen, nil
}

// finds adds a search to the history: as one reading of each subject of the person, and
// of each other subject that it found. The second kind may be a subject whose enrolment
// or removal is not answered yet. The caller holds mu.
func (t *Traffic) finds(person string, seen map[string][]string, o Operation) {
	for _, s := range t.people[person] {
		if _, ok := seen[s.id]; !ok {
			seen[s.id] = nil
		}
	}
	for subject, events := range seen {
		slices.Sort(events)
		o.Subject, o.Seen = subject, events
		t.History = append(t.History, o)
	}
}

// forget removes a subject that is gone from the subjects that clients choose from. The
// caller holds mu.
func (t *Traffic) forget(s *subject) {
	t.people[s.person] = slices.DeleteFunc(t.people[s.person], func(o *subject) bool { return o == s })
	if len(t.people[s.person]) == 0 {
		delete(t.people, s.person)
	}
}

// note adds a reading of one subject to the history.
func (t *Traffic) note(p plan, o Operation, a Answer) {
	o.Worker, o.Subject, o.Node = p.worker, p.subject.id, a.Node
	o.Call, o.End = a.began, t.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.History = append(t.History, o)
	t.Counts[string(o.Kind)]++
}

// verify compares a subject with a face.
func (t *Traffic) verify(ctx context.Context, p plan) error {
	a, err := t.do(ctx, t.big, p.first, Request{Method: http.MethodPost, Target: "/v1.1/face/verify", Body: map[string]any{"id": p.subject.id, "probe": t.options.image(p.face)}})
	if err != nil {
		return err
	}
	if a.Status != http.StatusOK && a.Status != http.StatusNotFound {
		return fmt.Errorf("verify: %d %s", a.Status, a.Body)
	}
	t.note(p, Operation{Kind: verify, Face: p.face, Tag: anyTag, Missing: a.Status == http.StatusNotFound}, a)
	return nil
}

// events lists a subject's events.
func (t *Traffic) events(ctx context.Context, p plan) error {
	a, list, err := reader{t}.eventsOf(ctx, p.first, p.subject.id)
	if err != nil {
		return err
	}
	t.note(p, Operation{Kind: events, Seen: list}, a)
	return nil
}

// eventsOf returns the ids of a subject's events, sorted.
func (t reader) eventsOf(ctx context.Context, first int, subject string) (a Answer, ids []string, err error) {
	a, err = t.do(ctx, t.big, first, Request{Method: http.MethodGet, Target: "/v1.1/subjects/" + subject + "/events"})
	if err != nil {
		return a, nil, err
	}
	var list struct{ Events []struct{ ID string } }
	if err := json.Unmarshal(a.Body, &list); err != nil || a.Status != http.StatusOK && a.Status != http.StatusNotFound {
		return a, nil, fmt.Errorf("events: %d %s", a.Status, a.Body)
	}
	for _, e := range list.Events {
		ids = append(ids, e.ID)
	}
	slices.Sort(ids)
	return a, ids, nil
}

// crowd registers a person in the small gallery, which is mostly full.
func (t *Traffic) crowd(ctx context.Context, r *mrand.Rand, first int) error {
	key := newKey()
	a, err := t.do(ctx, t.small, first, Request{Method: http.MethodPost, Target: "/v1.1/subjects", Body: map[string]any{"face": t.options.image(key)}, Key: key})
	if err != nil {
		return err
	}
	full := a.Status == http.StatusBadRequest
	if a.Status != http.StatusCreated && !full {
		return fmt.Errorf("enrol in the small gallery: %d %s", a.Status, a.Body)
	}
	t.mu.Lock()
	t.Counts["small gallery"]++
	t.mu.Unlock()
	var m made
	if full || r.IntN(3) == 0 || json.Unmarshal(a.Body, &m) != nil {
		return nil
	}
	_, err = t.do(ctx, t.small, first, Request{Method: http.MethodDelete, Target: "/v1.1/subjects/" + m.ID})
	return err
}

// list returns the active entries of a gallery, and the number of all its entries.
func (t *Traffic) list(ctx context.Context, s Sender, first int) (active []entry, total int, err error) {
	for start := 0; start == 0 || start < total; start += listLength {
		a, err := t.do(ctx, s, first, Request{Method: http.MethodGet, Target: fmt.Sprintf("/v1.1/subjects?start=%d&length=%d", start, listLength)})
		if err != nil {
			return nil, 0, err
		}
		var page struct {
			Subjects []struct{ ID, EventID, Status string }
			Total    int
		}
		if err := json.Unmarshal(a.Body, &page); err != nil || a.Status != http.StatusOK && a.Status != http.StatusNotFound {
			return nil, 0, fmt.Errorf("list: %d %s", a.Status, a.Body)
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

// shardOf returns the shard that a subject's id names.
func shardOf(subject string) int {
	u, err := id.Parse(subject)
	if err != nil {
		return -1
	}
	return int(u.Shard())
}
