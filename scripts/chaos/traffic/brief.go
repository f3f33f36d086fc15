package traffic

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

const (
	// briefEvery is the pause between two brief galleries, each deleted while clients
	// fill it. briefWriters clients enrol up to briefMost people each.
	briefEvery   = 5 * time.Second
	briefWriters = 2
	briefMost    = 8
	// refusedAfter is how long a node may accept the key of a deleted gallery.
	refusedAfter = 2 * time.Second
)

// briefly creates and deletes galleries until stop ends.
func (t *Traffic) briefly(stop, give context.Context) {
	for n := 0; stop.Err() == nil; n++ {
		if err := t.brief(give, n); err != nil {
			t.fail(err.Error())
		}
		pause(stop, briefEvery)
	}
}

// brief creates a gallery and deletes it while clients fill it. After the answer to the
// deletion no node may find anything in the gallery.
func (t *Traffic) brief(ctx context.Context, n int) error {
	g, err := t.found(ctx, fmt.Sprint("brief ", n), SmallSize, 0)
	if err != nil {
		return err
	}
	s := t.own(g.APIKey)
	fails := make([]error, briefWriters)
	var work sync.WaitGroup
	for w := range fails {
		work.Go(func() { fails[w] = t.fill(ctx, s, n+w) })
	}
	pause(ctx, time.Duration(n%4)*100*time.Millisecond)
	a, err := t.do(ctx, t.portal, n, Request{Method: http.MethodDelete, Target: "/api/galleries/" + g.ID})
	if err == nil && a.Status != http.StatusNoContent && (a.Status != http.StatusNotFound || a.tries == 0) {
		err = fmt.Errorf("delete a gallery: %d %s", a.Status, a.Body)
	}
	work.Wait()
	if err = errors.Join(append(fails, err)...); err != nil {
		return err
	}
	pause(ctx, refusedAfter)
	for i := range s.Nodes() {
		a, err := t.do(ctx, s, i, Request{Method: http.MethodPost, Target: "/v1.1/face/search", Body: map[string]any{"probe": t.options.image(hot(0) + "-0")}})
		if err != nil {
			return err
		}
		if a.Status != http.StatusForbidden {
			return fmt.Errorf("a search in a gallery that was deleted: %d %s", a.Status, a.Body)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Counts["brief gallery"]++
	return nil
}

// fill enrols people in a gallery until the gallery is gone.
func (t *Traffic) fill(ctx context.Context, s Sender, first int) error {
	for i := range briefMost {
		a, err := t.do(ctx, s, first+i, Request{Method: http.MethodPost, Target: "/v1.1/subjects", Body: map[string]any{"face": t.options.image(hot(0) + "-0")}, Key: newKey()})
		switch {
		case err != nil:
			return err
		case a.Status == http.StatusForbidden, a.Status == http.StatusBadRequest && bytes.Contains(a.Body, []byte("GalleryFull")):
			return nil // a gallery under deletion has no slots
		case a.Status != http.StatusCreated:
			return fmt.Errorf("enrol in a gallery that is being deleted: %d %s", a.Status, a.Body)
		}
		pause(ctx, t.options.Pace)
	}
	return nil
}
