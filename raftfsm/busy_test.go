package raftfsm

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestExcessCommandIsRefusedAtOnce(t *testing.T) {
	inGroup(t, names(3), nil, func(t *testing.T, c *cluster) {
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
	})
}
