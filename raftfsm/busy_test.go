package raftfsm

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestExcessCommandIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newWires(), nil)
		c.found(names(3)...)
		c.propose("x")
		leader := c.leader()
		for range proposalsMax {
			leader.slots <- struct{}{}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		_, err := leader.Propose(ctx, []byte("one too many"))
		if took := time.Since(began); !errors.Is(err, ErrBusy) || took > 0 {
			t.Errorf("got %v after %s, want ErrBusy at once", err, took)
		}
		for range proposalsMax {
			<-leader.slots
		}
		c.propose("there is room again")
		c.agree()
		c.close()
		settle()
	})
}
