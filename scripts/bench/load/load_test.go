package load

import (
	"errors"
	"testing"
	"time"

	"facet/scripts/bench/https"
)

func TestArrivalsKeepTheirRate(t *testing.T) {
	t.Parallel()
	for name, at := range map[string][]time.Duration{"even": Even(100, 100*time.Second), "random": Random(100, 100*time.Second)} {
		within := map[string]int{"even": 1, "random": 400}[name]
		if n := len(at) - 10_000; n < -within || n > within {
			t.Errorf("%s arrivals: %d in 100 s at 100/s", name, len(at))
		}
		for i := range at[1:] {
			if at[i] > at[i+1] {
				t.Fatalf("%s arrivals: %v is before %v", name, at[i], at[i+1])
			}
		}
	}
}

func TestAnswersAreToldApart(t *testing.T) {
	t.Parallel()
	f := func(a https.Answer, good, refused bool) {
		t.Helper()
		if a.Good() != good || a.Refused() != refused {
			t.Errorf("%+v: good %v, refused %v", a, a.Good(), a.Refused())
		}
	}
	f(https.Answer{Status: 200}, true, false)
	f(https.Answer{Status: 404}, true, false) // nobody was found
	f(https.Answer{Status: 429, Retry: true}, false, true)
	f(https.Answer{Status: 500, Retry: true}, false, true)
	f(https.Answer{Status: 429}, false, false)
	f(https.Answer{Status: 500}, false, false)
	f(https.Answer{Status: 403, Retry: true}, false, false)
}

func TestTallyCountsEveryRequest(t *testing.T) {
	t.Parallel()
	var n Tally
	n.add(https.Answer{Status: 200}, nil, time.Second)
	n.add(https.Answer{Status: 429, Retry: true}, nil, time.Millisecond)
	n.add(https.Answer{Status: 429}, nil, 0)
	n.add(https.Answer{}, errors.New("reset"), 0)
	n.Elapsed = 2 * time.Second
	if n.Sum() != 4 || n.Rate() != .5 || n.Others["429"] != 1 || n.Others["no answer"] != 1 || n.Served() != 1 {
		t.Errorf("got %d requests, %v a second, %v", n.Sum(), n.Rate(), n.Others)
	}
	if n.AllServed() == nil {
		t.Error("three requests were not served, and all are said to be")
	}
}
