package sim

import (
	"testing"
	"time"

	"facet/internal/must"
	"facet/node/nodetest"
	"facet/router"
)

// newKeyMax is the longest time in which a node finds an access key that another node has
// just created: a round trip to meta's leader and a read round, without a pause.
const newKeyMax = 20 * time.Millisecond

// A node need not wait until meta's leader tells it by itself that a new key is committed.
func TestNewKeyWorksElsewhereAtOnce(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		w := newWorld(t)
		time.Sleep(10 * time.Second)
		for round := range 6 {
			r := w.cluster.Nodes[round%3].Node.Router()
			tenant, err := r.TenantNamed(t.Context(), "bank")
			must.Do(t, err)
			key, err := r.CreateAccessKey(t.Context(), tenant, router.KeyTerms{Role: router.RoleReadOnly})
			must.Do(t, err)
			for i := 1; i < 3; i++ {
				node := (round + i) % 3
				began := time.Now()
				_, err := w.cluster.Nodes[node].Node.Router().AccessKey(t.Context(), key.ID)
				if took := time.Since(began); err != nil || took > newKeyMax {
					t.Errorf("round %d: node %d knew the key after %s: %v, want %s", round, node+1, took, err, newKeyMax)
				}
			}
			must.Do(t, r.RevokeAccessKey(t.Context(), tenant, key.ID))
			time.Sleep(time.Duration(round) * 300 * time.Millisecond)
		}
	})
}
