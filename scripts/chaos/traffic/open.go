package traffic

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// SmallSize is the number of slots of the small gallery, which clients keep full.
	SmallSize = 40
	// lookEvery is how often the small gallery is counted and another tenant tries to
	// use the large one. growEvery is how often the large gallery grows.
	lookEvery = 2 * time.Second
	growEvery = 7 * time.Second
)

// Traffic has the clients of a tenant with a large and a small gallery, and what they
// saw. Its exported fields may be read when neither Run nor Complete runs.
type Traffic struct {
	History []Operation
	Named   []Named        // operations on external ids
	Paired  []Paired       // operations on faces of merges
	Counts  map[string]int // answers by kind
	Acked   []Ack
	Reads   []Reading
	Failed  []Failure
	Wrong   map[string]int // wrong answers in words, and how often

	options    Options
	big, small Sender
	own        func(apiKey string) Sender
	portal     Sender    // manages the tenant's galleries
	stranger   Sender    // has another tenant's access key and the large gallery's API key
	gallery    string    // the large one's id
	keys       [2]string // API keys of the large and the small one
	start      time.Time

	// mu guards last, people, sent, pairs, receipts and the exported fields.
	mu   sync.Mutex
	last time.Duration // that now gave
	// people maps each person to the subjects that may be live: from the answer to the
	// enrolment until the clients know that the subject is gone.
	people map[string][]*subject
	sent   []sent  // enrolments that may be sent again
	pairs  []*pair // that were to be merged
	// receipts are what the receipts of searches in the large gallery have shown.
	receipts receipts
}

// Open creates the galleries. own and other return senders with the access keys of two
// tenants and with an API key; an empty one means none.
func Open(ctx context.Context, own, other func(apiKey string) Sender, o Options) (*Traffic, error) {
	if o.Size == 0 {
		o.Size = 1_000_000
	}
	t := &Traffic{
		Counts: map[string]int{}, Wrong: map[string]int{}, people: map[string][]*subject{},
		options: o, own: own, portal: own(""), start: time.Now(),
	}
	kept := 0
	if o.Expiring {
		kept = keptDays
	}
	big, err := t.found(ctx, "big", o.Size, kept)
	if err != nil {
		return nil, err
	}
	small, err := t.found(ctx, "small", SmallSize, 0)
	if err != nil {
		return nil, err
	}
	t.keys = [2]string{big.APIKey, small.APIKey}
	t.gallery, t.big, t.small, t.stranger = big.ID, own(big.APIKey), own(small.APIKey), other(big.APIKey)
	for _, tag := range tags {
		a, err := Insist(ctx, t.big, 0, Request{Method: http.MethodPost, Target: "/v1.1/tags/" + tag})
		if err != nil {
			return nil, err
		}
		if a.Status >= http.StatusMultipleChoices {
			return nil, fmt.Errorf("make tag %s: %d %s", tag, a.Status, a.Body)
		}
	}
	t.start = time.Now()
	return t, load(ctx, t)
}

// ballastAtOnce is how many people of the ballast are enrolled at once.
const ballastAtOnce = 16

// load enrols the ballast of t.
func load(ctx context.Context, t *Traffic) error {
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(ballastAtOnce)
	for n := range t.options.Ballast {
		work.Go(func() error {
			p := t.look(-2-n%ballastAtOnce, n, fmt.Sprintf("ballast-%d", n))
			p.tag = ""
			return t.enrol(ctx, p)
		})
	}
	return work.Wait()
}

// Start returns when the histories begin.
func (t *Traffic) Start() time.Time { return t.start }

// AckedOn returns the number of writes that the shards acknowledged since a time,
// counted from the beginning. It may be called while Run runs.
func (t *Traffic) AckedOn(shards []int, since time.Duration) (count int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range t.Acked {
		if a.At >= since && slices.Contains(shards, a.Shard) {
			count++
		}
	}
	return count
}

// gallery is the answer to the creation of a gallery.
type gallery struct{ ID, APIKey string }

// found creates a gallery. With kept, its photos expire so many days after their last update.
func (t *Traffic) found(ctx context.Context, name string, size, kept int) (g gallery, err error) {
	body := map[string]any{"name": name, "description": "", "size": size, "faceMinimumQualityScore": 0.45}
	if kept > 0 {
		body["retentionDays"] = kept
	}
	a, err := Insist(ctx, t.portal, 0, Request{Method: http.MethodPost, Target: "/api/galleries", Key: newKey(), Body: body})
	if err != nil {
		return g, err
	}
	if err := json.Unmarshal(a.Body, &g); err != nil || g.APIKey == "" {
		return g, fmt.Errorf("make gallery %s: %d %s: %w", name, a.Status, a.Body, err)
	}
	return g, nil
}

// grow increases the size of the large gallery.
func (t *Traffic) grow(ctx context.Context, size int) error {
	a, err := Insist(ctx, t.portal, size, Request{Method: http.MethodPatch, Target: "/api/galleries/" + t.gallery, Body: map[string]any{"size": size}})
	if err == nil && a.Status != http.StatusOK {
		err = fmt.Errorf("let the gallery grow to %d: %d %s", size, a.Status, a.Body)
	}
	return err
}

// knock lets another tenant ask for the large gallery and its subjects. It returns an
// error unless the node refuses.
func (t *Traffic) knock(ctx context.Context, first int) error {
	for _, door := range []struct {
		target string
		status int
	}{{"/v1.1/subjects", http.StatusForbidden}, {"/api/galleries/" + t.gallery, http.StatusNotFound}} {
		a, err := Insist(ctx, t.stranger, first, Request{Method: http.MethodGet, Target: door.target})
		if err != nil {
			return err
		}
		if a.Status != door.status {
			return fmt.Errorf("a stranger asks for %s: %d, want %d", door.target, a.Status, door.status)
		}
	}
	return nil
}

// watch counts the small gallery's entries, knocks, and grows the large gallery until
// stop ends.
func (t *Traffic) watch(stop, give context.Context) {
	size, grown := t.options.Size, time.Now()
	for n := 0; stop.Err() == nil; n++ {
		err := t.count(give, n)
		if err == nil {
			err = t.knock(give, n)
		}
		if err == nil && t.options.Step > 0 && size+t.options.Step <= t.options.SizeMax && time.Since(grown) >= growEvery {
			size, grown = size+t.options.Step, time.Now()
			err = t.grow(give, size)
		}
		if err != nil {
			t.fail(err.Error())
		}
		pause(stop, lookEvery)
	}
}

func pause(stop context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-time.After(d):
	case <-stop.Done():
	}
}
