package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"facet/node/sigv4"
)

// repeats is how often a captured write is sent again to each node.
const repeats = 4

// replays sends captured requests again.
type replays struct{ *attack }

// replay sends captured requests again: byte for byte, with changed headers that their
// signature does not cover, and late.
func (a replays) replay(c *tally) error {
	for _, step := range []func(*tally) error{a.repeatWrites, a.repeatOldWrites, a.repeatTags, a.otherHeaders, a.otherApplication, a.late} {
		if err := step(c); err != nil {
			return err
		}
	}
	return nil
}

// active returns the number of active events of the victim's second gallery.
func (a replays) active() (n int, err error) {
	v := a.victim
	got, err := a.send(0, address{4, 1}, a.sign(0, v.only, http.MethodGet, "/v1.1/subjects?start=0&length=1000", nil, apiKey(v.second.apiKey)))
	if err != nil || got.status != http.StatusOK && got.status != http.StatusNotFound {
		return 0, fmt.Errorf("list: %s, %w", got, err)
	}
	var l struct{ Subjects []struct{ Status string } }
	err = json.Unmarshal([]byte(got.body), &l)
	for _, s := range l.Subjects {
		if s.Status == "A" {
			n++
		}
	}
	return n, err
}

// repeatWrites registers a person with and without a key, and sends both requests again
// to all nodes: one effect each, and the first answer again.
func (a replays) repeatWrites(c *tally) error {
	v := a.victim
	body := map[string]any{"face": encoded(a.photos[another])}
	before, err := a.active()
	if err != nil {
		return err
	}
	for i, headers := range [][]sigv4.Header{{apiKey(v.second.apiKey)}, {apiKey(v.second.apiKey), {Name: "idempotency-key", Value: "captured-1"}}} {
		q := a.sign(0, v.biometric, http.MethodPost, "/v1.1/subjects", body, headers...)
		first, err := a.send(0, address{4, 1}, q)
		if err != nil || first.status != http.StatusCreated {
			return fmt.Errorf("register: %s, %w", first, err)
		}
		each(nodes*repeats, 4, func(n int) {
			c.try()
			got, err := a.send(n%nodes, address{4, 1}, q)
			if err != nil || got.status != first.status || got.body != first.body {
				c.got("a registration again (%d): %s, want %s, %v", i, got, first, err)
			}
		})
		after, err := a.active()
		if err != nil {
			return err
		}
		if after != before+i+1 {
			c.got("%d registrations sent %d times: %d more events", i+1, nodes*repeats+1, after-before)
		}
		var s subject
		if err := json.Unmarshal([]byte(first.body), &s); err != nil {
			return err
		}
		if err := a.repeatAfterErasure(c, q, s, i == 1); err != nil {
			return err
		}
		before = before - 1 // the subject is gone
	}
	return nil
}

// repeatAfterErasure erases a subject and sends its registration again: it must not come
// back. The erasure runs again without harm.
func (a replays) repeatAfterErasure(c *tally, q request, s subject, keyed bool) error {
	v := a.victim
	gone := a.sign(1, v.biometric, http.MethodDelete, "/v1.1/subjects/"+s.ID, nil, apiKey(v.second.apiKey))
	if got, err := a.send(1, address{4, 1}, gone); err != nil || got.status != http.StatusNoContent {
		return fmt.Errorf("erase: %s, %w", got, err)
	}
	before, err := a.active()
	if err != nil {
		return err
	}
	for n := range nodes {
		c.try()
		got, err := a.send(n, address{4, 1}, q)
		if want := map[bool]int{true: http.StatusCreated, false: http.StatusBadRequest}[keyed]; err != nil || got.status != want {
			c.got("the registration of an erased subject again: %s, want %d, %v", got, want, err)
		}
		c.try()
		if got, err = a.send(n, address{4, 1}, gone); err != nil || got.status != http.StatusNotFound {
			c.got("an erasure again: %s, %v", got, err)
		}
	}
	after, err := a.active()
	if err == nil && after != before {
		c.got("an erased subject came back: %d events, then %d", before, after)
	}
	return err
}

// repeatOldWrites sends writes again after later ones: the later ones must stay.
func (a replays) repeatOldWrites(c *tally) error {
	v := a.victim
	key := apiKey(v.second.apiKey)
	application := func(threshold int) request {
		return a.sign(0, v.admin, http.MethodPatch, "/api/applications/"+v.sibling.id, map[string]any{"verifyThreshold": threshold})
	}
	comparison := func(threshold int) request {
		return a.sign(0, v.admin, http.MethodPost, "/v1.1/jobs/duplicates", map[string]any{"threshold": threshold}, key)
	}
	for _, w := range []struct{ old, now, look request }{
		{application(6000), application(8000), a.sign(0, v.admin, http.MethodGet, "/api/applications/"+v.sibling.id, nil)},
		{comparison(7000), comparison(8000), a.sign(0, v.admin, http.MethodGet, "/v1.1/jobs/duplicates", nil, key)},
	} {
		for _, q := range []request{w.old, w.now} {
			if got, err := a.send(0, address{4, 1}, q); err != nil || got.status != http.StatusOK {
				return fmt.Errorf("a change: %s, %w", got, err)
			}
		}
		for n := range nodes * repeats {
			c.try()
			if got, err := a.send(n%nodes, address{4, 1}, w.old); err != nil || got.status != http.StatusOK {
				c.got("an old change again: %s, %v", got, err)
			}
			var is struct{ VerifyThreshold, Threshold int }
			got, err := a.send(n%nodes, address{4, 1}, w.look)
			if err == nil {
				err = json.Unmarshal([]byte(got.body), &is)
			}
			if err != nil || got.status != http.StatusOK {
				return fmt.Errorf("after an old change: %s, %w", got, err)
			}
			if threshold := max(is.VerifyThreshold, is.Threshold); threshold != 8000 {
				c.got("an old change undid a later one: threshold %d, want 8000", threshold)
			}
		}
	}
	return nil
}

// repeatTags deletes a tag, makes it again, and sends the deletion again: it runs again, as
// the interface says, and no more than that.
func (a replays) repeatTags(c *tally) error {
	v := a.victim
	makes := func(node int) request {
		return a.sign(node, v.biometric, http.MethodPost, "/v1.1/tags/again", nil, apiKey(v.gallery.apiKey))
	}
	gone := a.sign(0, v.biometric, http.MethodDelete, "/v1.1/tags/again", nil, apiKey(v.gallery.apiKey))
	for i, q := range []request{makes(0), gone, makes(1), gone, gone} {
		c.try()
		want := http.StatusOK
		if i == 4 {
			want = http.StatusNotFound
		}
		if got, err := a.send(i%nodes, address{4, 5}, q); err != nil || got.status != want {
			c.got("step %d of a tag that comes and goes: %s, want %d, %v", i, got, want, err)
		}
	}
	return nil
}

// otherHeaders adds headers to a captured write that its signature does not cover.
func (a replays) otherHeaders(c *tally) error {
	v := a.victim
	q := a.sign(0, v.biometric, http.MethodPost, "/v1.1/tags/captured", nil, apiKey(v.second.apiKey))
	if got, err := a.send(0, address{4, 1}, q); err != nil || got.status != http.StatusOK {
		return fmt.Errorf("make a tag: %s, %w", got, err)
	}
	for i, h := range []sigv4.Header{
		{Name: "idempotency-key", Value: "k"},
		{Name: "Idempotency-Key", Value: ""},
		{Name: "idempotency-key", Value: "captured-1"},
		{Name: "x-amz-content-sha256", Value: "UNSIGNED-PAYLOAD"},
		{Name: "x-cloud-content-sha256", Value: "UNSIGNED-PAYLOAD"},
		{Name: "x-amz-date", Value: "20200101T000000Z"},
		{Name: "x-amz-security-token", Value: "t"},
		{Name: "x-api-key", Value: v.gallery.apiKey},
		{Name: "authorization", Value: "AWS4-HMAC-SHA256 a"},
		{Name: "host", Value: "evil.test"},
	} {
		c.try()
		got, err := a.send(i%nodes, address{4, 2}, q.with(h))
		if err != nil || !got.refusedSignature() {
			c.got("a captured request with another %s: %s, %v", h.Name, got, err)
		}
	}
	// These change nothing: the request stays what it was.
	for i, h := range []sigv4.Header{
		{Name: "x-http-method-override", Value: "DELETE"}, {Name: "x-original-url", Value: "/v1.1/tags/other"}, {Name: "x-forwarded-host", Value: "evil.test"}, {Name: "content-type", Value: "text/plain"},
	} {
		c.try()
		got, err := a.send(i%nodes, address{4, 2}, q.with(h))
		if err != nil || got.status != http.StatusBadRequest { // the tag is there
			c.got("a captured request with %s: %s, %v", h.Name, got, err)
		}
	}
	return a.expectNoTag(c, "other")
}

// otherApplication sends a captured request that did not sign its API key for other
// applications. The interface permits another application of the same tenant (setting
// must-sign forbids it), and never one of another tenant.
func (a replays) otherApplication(c *tally) error {
	v := a.victim
	for node := range nodes {
		bare := a.sign(node, v.only, http.MethodGet, "/v1.1/tags", nil)
		for _, t := range []struct {
			key  string
			want int
		}{{v.gallery.apiKey, 200}, {v.second.apiKey, 200}, {a.thief.gallery.apiKey, 403}, {"", 403}} {
			c.try()
			got, err := a.send(node, address{4, 3}, bare.with(apiKey(t.key)))
			if err != nil || got.status != t.want {
				c.got("a captured request without a signed API key: %s, want %d, %v", got, t.want, err)
			}
		}
		if err := a.otherGallery(c, node); err != nil {
			return err
		}
		whole := a.sign(node, v.only, http.MethodGet, "/v1.1/tags", nil, apiKey(v.gallery.apiKey))
		for i := range whole.headers {
			if whole.headers[i].Name == "x-api-key" {
				whole.headers[i].Value = v.second.apiKey
			}
		}
		c.try()
		if got, err := a.send(node, address{4, 3}, whole); err != nil || !got.refusedSignature() {
			c.got("a captured request with another API key than it signed: %s, %v", got, err)
		}
	}
	return nil
}

// otherGallery sends a captured write that did not sign its API key for another application
// of the tenant, again and again: it has one effect there.
func (a replays) otherGallery(c *tally, node int) error {
	v := a.victim
	bare := a.sign(node, v.biometric, http.MethodPost, "/v1.1/subjects", map[string]any{"face": encoded(a.photos[another])},
		sigv4.Header{Name: "idempotency-key", Value: fmt.Sprint("captured-at-", node)})
	before, err := a.active()
	if err != nil {
		return err
	}
	for n := range nodes {
		c.try()
		got, err := a.send(n, address{4, 3}, bare.with(apiKey(v.second.apiKey)))
		if err != nil || got.status != http.StatusCreated {
			c.got("a captured write without a signed API key: %s, want 201, %v", got, err)
		}
	}
	after, err := a.active()
	if err == nil && after != before+1 {
		c.got("a captured write without a signed API key had %d effects in another gallery, want 1", after-before)
	}
	return err
}

// late sends requests at both ends of the window, and one of them again after its end.
func (a replays) late(c *tally) error {
	v := a.victim
	at := func(off time.Duration, node int) request {
		late := v.only
		late.Skew = off
		return a.sign(node, late, http.MethodGet, "/v1.1/tags", nil, apiKey(v.gallery.apiKey))
	}
	for _, off := range []time.Duration{-time.Hour, -5*time.Minute - 2*time.Second, 5*time.Minute + 3*time.Second, time.Hour, 24 * time.Hour, -365 * 24 * time.Hour} {
		for node := range nodes {
			c.try()
			if got, err := a.send(node, address{4, 4}, at(off, node)); err != nil || got.status != http.StatusForbidden {
				c.got("a request signed %v off: %s, %v", off, got, err)
			}
		}
	}
	captured := at(-5*time.Minute+4*time.Second, 0)
	if got, err := a.send(0, address{4, 4}, captured); err != nil || got.status != http.StatusOK {
		return fmt.Errorf("a request within the window: %s, %w", got, err)
	}
	time.Sleep(6 * time.Second)
	for range nodes {
		c.try()
		if got, err := a.send(0, address{4, 4}, captured); err != nil || got.status != http.StatusForbidden {
			c.got("a captured request after its window: %s, %v", got, err)
		}
	}
	return nil
}
