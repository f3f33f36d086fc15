package audit

import (
	"net/netip"
	"sync"
	"testing"
	"time"
)

// Counts stay exact and bounded under a flood from many addresses and in many minutes.
func TestRefusalsAreBounded(t *testing.T) {
	t.Parallel()
	c := refusals{most: sourcesMax}
	at := time.Unix(600, 0)
	const workers, sources = 4, sourcesMax + 300
	var work sync.WaitGroup
	for w := range workers {
		work.Go(func() {
			for i := range sources {
				c.count(at, netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), func(n *refused) { n[Refusal(w)%refusalsCount]++ })
			}
		})
	}
	work.Wait()
	if early := c.take(10); len(early) != 0 {
		t.Errorf("the minute is not over, and has %v", early)
	}
	taken := c.take(11)
	m := taken[10]
	if len(taken) != 1 || m == nil || len(m) != sourcesMax+1 {
		t.Fatalf("%d minutes with %+v", len(taken), m)
	}
	var all uint64
	for _, n := range m {
		all += n.sum()
	}
	others := m[netip.Addr{}].sum()
	if want := uint64(workers * sources); all != want || others != workers*300 {
		t.Errorf("%d requests were counted, %d as others, want %d and %d", all, others, want, workers*300)
	}
	for i := range int64(minutesMax + 5) {
		c.count(time.Unix(60*i, 0), netip.Addr{}, func(n *refused) { n[TooOften]++ })
	}
	waiting := c.take(1 << 40)
	if len(waiting) != minutesMax || waiting[4] != nil || waiting[5] == nil {
		t.Errorf("%d minutes wait, want the last %d", len(waiting), minutesMax)
	}
	n := refused{UnknownKey: 3, TooOften: 1}
	if got := n.String(); got != "UnknownKey 3, TooOften 1" {
		t.Errorf("got %q", got)
	}
}
