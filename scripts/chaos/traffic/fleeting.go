package traffic

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	mrand "math/rand/v2"
	"net/http"
	"time"
)

const (
	// ExpiredWithin is how long after its time an event may still be found.
	ExpiredWithin = 5 * time.Second
	// lateTime is when most events expire: after the end of the attack, and long before a clock that
	// is a year ahead. keptDays is the large gallery's retention.
	lateTime = 30 * 24 * time.Hour
	keptDays = 90
	// fleetMin and fleetSpread say how long a fleeting person stays, fleetLook how often it is
	// searched.
	fleetMin, fleetSpread = 2 * time.Second, 3 * time.Second
	fleetLook             = 200 * time.Millisecond
)

// Expiry reports whether an operation is the expiry of an event, which no client carries out.
func (o Operation) Expiry() bool { return o.Kind == expire }

// wireTime returns a time of expiry in a request.
func wireTime(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }

// fleeting are persons who expire while their clients search for them.
type fleeting struct{ *Traffic }

// meet registers a person who expires after seconds, and searches for them until ExpiredWithin is
// over. The history gets the expiry: at its time or in the ExpiredWithin after it.
func (t fleeting) meet(ctx context.Context, r *mrand.Rand, p plan) error {
	if !t.options.Expiring {
		return t.find(ctx, p)
	}
	p.face, p.tag = fmt.Sprintf("fleeting-%d-%d", p.worker, p.call), ""
	p.person = p.face
	body := t.options.body(p)
	expires := time.Now().Add(fleetMin + time.Duration(r.Int64N(int64(fleetSpread)))).Truncate(time.Millisecond)
	body["expires"] = wireTime(expires)
	a, err := t.do(ctx, t.big, p.first, Request{Method: http.MethodPost, Target: "/v1.1/subjects", Body: body, Key: newKey()})
	if err != nil {
		return err
	}
	if a.Status == http.StatusBadRequest && bytes.Contains(a.Body, []byte("must be in the future")) && time.Now().After(expires) {
		return nil // no node answered until then
	}
	var m made
	if err := json.Unmarshal(a.Body, &m); err != nil || a.Status != http.StatusCreated || m.ID == "" {
		return fmt.Errorf("register a fleeting person: %d %s: %w", a.Status, a.Body, errAnswer)
	}
	t.mu.Lock()
	o := Operation{Worker: p.worker, Kind: enrol, Subject: m.ID, Event: m.EventID, Face: p.face, Call: p.call, End: t.tick(), Node: a.Node}
	gone := Operation{Worker: -1, Kind: expire, Subject: m.ID, Event: m.EventID, Call: expires.Sub(t.start)}
	gone.End = max(gone.Call, o.End) + ExpiredWithin
	t.History = append(t.History, o, gone)
	t.people[p.person] = []*subject{{id: m.ID, person: p.person, events: []string{m.EventID}}}
	t.Counts["fleeting"]++
	t.mu.Unlock()
	for ctx.Err() == nil && t.Now() < gone.End {
		p.first++
		if err := t.find(ctx, p); err != nil {
			return err
		}
		pause(ctx, fleetLook)
	}
	err = t.find(ctx, p)
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.people, p.person)
	return err
}
