package membership

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"facet/internal/must"
	"facet/node/transport/memnet"
)

// The nodes take the steps one by one, with time in between: nodes at two
// successive steps understand one another.
func TestGossipKeyChangeLosesNoNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(1)
		w, parties := three(t, n)
		old, next := make([]byte, KeyBytes), bytes.Repeat([]byte{7}, KeyBytes)
		for _, keys := range [][][]byte{{old, next}, {next, old}, {next}} {
			for _, p := range parties {
				must.Do(t, p.ChangeKeys(keys))
				for range 10 {
					time.Sleep(time.Second)
					await(t, time.Second, 3, parties...)
				}
			}
		}
		w.seeds = []string{"10.0.0.1:7000"}
		late := w.join(t, n.Host("10.0.0.4"), 4, 1, "10.0.0.4:7000") // joins with the old key
		right := w.join(t, n.Host("10.0.0.5"), 5, 1, "10.0.0.5:7000", func(c *Config) { c.Keys = [][]byte{next} })
		await(t, 10*time.Second, 4, append(parties, right)...)
		time.Sleep(time.Minute)
		if got := len(late.Members()); got != 1 {
			t.Errorf("a node with the old key sees %d members", got)
		}
		stopAll(t, append(parties, late, right)...)
	})
}

func TestRingWithoutAGoodKeyIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, parties := three(t, memnet.New(1))
		for _, keys := range [][][]byte{nil, {make([]byte, 5)}, make([][]byte, 40)} {
			if err := parties[0].ChangeKeys(keys); !errors.Is(err, errKeys) {
				t.Errorf("%d keys: got %v", len(keys), err)
			}
		}
		stopAll(t, parties...)
	})
}
