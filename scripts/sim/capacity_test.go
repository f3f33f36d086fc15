package sim

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"facet/node/nodetest"
)

// crowd registers and unregisters persons in a gallery that is too small for them.
type crowd struct {
	*world
	mu      sync.Mutex
	present map[string]string // subject by person, as acknowledged
}

func (c *crowd) come(worker, n int) {
	person := fmt.Sprintf("crowd-%d-%d", worker, n)
	a := c.insist(worker, http.MethodPost, "/v1.1/subjects", face(person), keyed(person))
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case a.Status == http.StatusCreated:
		var s struct{ ID string }
		a.Decode(c.t, &s)
		c.present[person] = s.ID
	case strings.Contains(string(a.Body), "GalleryFull"): // it is too small for all
	default:
		c.t.Errorf("register %s: %d %s", person, a.Status, a.Body)
	}
}

// leave unregisters a person who is present, if there is one.
func (c *crowd) leave(worker int) {
	c.mu.Lock()
	person, subject := "", ""
	for person, subject = range c.present {
		delete(c.present, person)
		break
	}
	c.mu.Unlock()
	if person == "" {
		return
	}
	// A delete whose first answer was lost gets 404.
	if a := c.insist(worker, http.MethodDelete, "/v1.1/subjects/"+subject, nil); a.Status != http.StatusNoContent && a.Status != http.StatusNotFound {
		c.t.Errorf("unregister %s: %d %s", person, a.Status, a.Body)
	}
}

// Eight clients register and unregister in a gallery of 40 over four shards,
// through partitions. At the end the test fills the gallery to exactly its size: no
// slot was lost and none was created.
func TestGalleryIsFilledExactly(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		const size = 40
		c := &crowd{world: newWorldOf(t, nodetest.Options{SlotsPerShard: 10}, size), present: map[string]string{}}
		ctx, stop := context.WithCancel(t.Context())
		var workers sync.WaitGroup
		for worker := range 8 {
			workers.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					if c.come(worker, n); n%3 == 2 {
						c.leave(worker)
					}
					time.Sleep(400 * time.Millisecond)
				}
			})
		}
		for round := range 3 {
			time.Sleep(2 * time.Second)
			c.cut(round)
			time.Sleep(8 * time.Second)
			c.net.Heal()
		}
		time.Sleep(10 * time.Second)
		stop()
		workers.Wait()
		for n := range 2 * size {
			c.come(100, n)
		}
		var g struct{ Count int }
		var list struct{ Galleries []struct{ ID string } }
		c.client.Call(t, c.cluster.Nodes[0].URL, http.MethodGet, "/api/galleries", nil).Decode(t, &list)
		c.client.Call(t, c.cluster.Nodes[0].URL, http.MethodGet, "/api/galleries/"+list.Galleries[0].ID, nil).Decode(t, &g)
		if len(c.present) != size || g.Count != size {
			t.Errorf("%d were told that they are in, the gallery counts %d, and its size is %d", len(c.present), g.Count, size)
		}
	})
}
