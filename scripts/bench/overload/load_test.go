//go:build linux

package main

import (
	"errors"
	"testing"
	"time"
)

func TestAnswersAreToldApart(t *testing.T) {
	t.Parallel()
	f := func(a answer, good, refused bool) {
		t.Helper()
		if a.good() != good || a.refused() != refused {
			t.Errorf("%+v: good %v, refused %v", a, a.good(), a.refused())
		}
	}
	f(answer{status: 200}, true, false)
	f(answer{status: 404}, true, false) // nobody was found
	f(answer{status: 429, retry: true}, false, true)
	f(answer{status: 500, retry: true}, false, true)
	f(answer{status: 429}, false, false)
	f(answer{status: 500}, false, false)
	f(answer{status: 403, retry: true}, false, false)
}

func TestATallyKnowsEveryRequest(t *testing.T) {
	t.Parallel()
	var n tally
	n.add(answer{status: 200}, nil, time.Second)
	n.add(answer{status: 429, retry: true}, nil, time.Millisecond)
	n.add(answer{status: 429}, nil, 0)
	n.add(answer{}, errors.New("reset"), 0)
	n.elapsed = 2 * time.Second
	if n.sum() != 4 || n.rate() != .5 || n.others["429"] != 1 || n.others["no answer"] != 1 || n.served() != 1 {
		t.Errorf("got %d requests, %v a second, %v", n.sum(), n.rate(), n.others)
	}
}

func TestQuantilesOfNothingAreZero(t *testing.T) {
	t.Parallel()
	if got := sample(nil).ms(.99); got != 0 {
		t.Errorf("got %v", got)
	}
	s := sample{3 * time.Millisecond, time.Millisecond, 2 * time.Millisecond}
	if s.ms(.5) != 2 || s.ms(1) != 3 {
		t.Errorf("got %v and %v", s.ms(.5), s.ms(1))
	}
}
