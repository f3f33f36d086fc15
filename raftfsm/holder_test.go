package raftfsm

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"facet/internal/id"
)

// door is the Holder of one member of a test.
type door struct {
	token string

	mu      sync.Mutex // guards shut and refuses
	shut    bool       // this process may not act
	refuses map[id.Member]bool
}

var errShut = errors.New("shut")

func (d *door) Token() string { return d.token }

func (d *door) MayAct(voters func() []id.Member) error {
	list := voters()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shut || len(list) == 0 {
		return errShut
	}
	return nil
}

func (d *door) Admits(m id.Member, token string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refuses[m] || token != "token of "+string(m) {
		return errShut
	}
	return nil
}

func TestRefusedProcessIsNotHeard(t *testing.T) {
	doors := map[id.Member]*door{}
	tune := func(cfg *Config) {
		d := &door{token: "token of " + string(cfg.Self), refuses: map[id.Member]bool{}}
		doors[cfg.Self] = d
		cfg.Holder = d
	}
	inGroup(t, names(3), tune, func(t *testing.T, c *cluster) {
		old := c.leader()
		rest := c.others(old)
		for _, m := range rest {
			d := doors[m]
			d.mu.Lock()
			d.refuses[old.name] = true
			d.mu.Unlock()
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := old.Propose(ctx, []byte("y")); err == nil {
			t.Error("a process that its peers refuse commits")
		}
		c.propose("z", rest...)
		if since := time.Since(began); since > 5*time.Second {
			t.Errorf("the others elected a leader after %s", since)
		}
		if old.IsLeader() {
			t.Error("a process that its peers refuse leads")
		}
		if _, err := old.ReadIndex(ctx); err == nil {
			t.Error("a process that its peers refuse confirms a read")
		}
		// One of the two may not act. The other has only the vote of the refused one.
		next := c.leader(rest...)
		silent := doors[c.others(next)[0]]
		if c.others(next)[0] == old.name {
			silent = doors[c.others(next)[1]]
		}
		silent.mu.Lock()
		silent.shut = true
		silent.mu.Unlock()
		late, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		if _, err := next.Propose(late, []byte("w")); err == nil {
			t.Error("the answer of a process that may not act counts, or that of a refused one")
		}
	})
}
