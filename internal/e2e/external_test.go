package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	contendRounds = 5
	contendIDs    = 6 // external ids of a round
	// claimFree is how long the next registration may wait for an external id whose
	// registration died with its node, elections included.
	claimFree = 10 * time.Second
)

// contender is one of two registrations of an external id at once.
type contender struct {
	first    int  // node of its first try
	gives    bool // gives up when it gets no answer
	external string

	subject string // that it registered, or that the refusal names
	won     bool
	err     error
}

// run registers the face until it is answered.
func (o *contender) run(k *client, face, key string) {
	r, err := k.sign(http.MethodPost, "/v1.1/subjects", key, map[string]any{"face": face, "externalId": o.external})
	if err != nil {
		o.err = err
		return
	}
	for begin, try := time.Now(), 0; time.Since(begin) < giveUpTime; try++ {
		a, err := k.send((o.first+try)%len(k.info.Nodes), r)
		var got struct{ ID, Message, ErrorType string }
		switch {
		case err != nil && o.gives:
			return
		case err != nil || a.status >= 500 || a.status == http.StatusTooManyRequests:
			time.Sleep(20 * time.Millisecond)
			continue
		}
		if err := json.Unmarshal(a.body, &got); err != nil {
			o.err = err
			return
		}
		switch {
		case a.status == http.StatusCreated:
			o.subject, o.won = got.ID, true
		case a.status == http.StatusBadRequest && got.ErrorType == "Duplicate":
			o.subject = got.Message[strings.LastIndexByte(got.Message, ' ')+1:]
		default:
			o.err = fmt.Errorf("got %d %.200s", a.status, a.body)
		}
		return
	}
	o.err = fmt.Errorf("not acknowledged within %s", giveUpTime)
}

// An external id has one subject when two registrations meet, and the leader of a shard is
// killed between the claim to the id and the registration. One that dies leaves the id free.
func TestExternalIDSurvivesKilledLeaders(t *testing.T) {
	c := serve(t, program(), 3, 3)
	k := c.client(t, 1000)
	face := encoded(t, obama)
	unanswered, left := 0, 0 // registrations, external ids
	for round := range contendRounds {
		victim := c.leader(t, 1+round%3)
		at := 0
		for c.nodes[at] != victim {
			at++
		}
		all := make([]*contender, 2*contendIDs)
		var running sync.WaitGroup
		answered := make(chan bool, len(all))
		for i := range all {
			o := &contender{first: at, external: fmt.Sprint("staff/", round, "-", i/2)}
			switch i / 2 % 3 {
			case 0: // the second one goes to another node, and both insist
				o.first += i % 2
			case 1: // the first one gives up when the node dies
				o.first, o.gives = at+i%2*2, i%2 == 0
			default: // both do
				o.gives = true
			}
			all[i] = o
			running.Go(func() {
				all[i].run(k, face, fmt.Sprint(round, "-", i))
				answered <- true
			})
		}
		for range 1 + rand.N(contendIDs) { // then others are between claim and registration
			<-answered
		}
		time.Sleep(rand.N(20 * time.Millisecond))
		victim.end(syscall.SIGKILL)
		running.Wait()
		for i, o := range all {
			if o.err != nil {
				t.Errorf("round %d, registration %d of %s: %v", round, i%2, o.external, o.err)
			}
			if o.subject == "" {
				unanswered++
			}
		}
		for i := range contendIDs {
			if k.oneHolder(t, (at+1)%3, face, all[2*i:2*i+2]) {
				left++
			}
		}
		c.start(t, victim)
		c.waitWhole(t)
	}
	t.Logf("%d external ids, %d registrations died with their nodes, %d of them left a claim", contendRounds*contendIDs, unanswered, left)
}

// oneHolder checks that the external id of two contenders has one subject, also when it is registered
// once more. It reports whether that had to wait for a claim that was left.
func (k *client) oneHolder(t *testing.T, node int, face string, of []*contender) (waited bool) {
	t.Helper()
	next := contender{first: node, external: of[0].external}
	began := time.Now()
	next.run(k, face, "next "+next.external)
	took := time.Since(began)
	if next.err != nil || took > claimFree {
		t.Errorf("%s once more, after %v: %v", next.external, took, next.err)
	}
	var list struct {
		Subjects []struct{ ID string }
	}
	k.get(t, node, "/v1.1/subjects?externalId="+strings.ReplaceAll(next.external, "/", "%2F")).want(t, http.StatusOK, &list)
	if len(list.Subjects) != 1 || list.Subjects[0].ID != next.subject {
		t.Errorf("%s finds %v, and was registered for %s", next.external, list.Subjects, next.subject)
	}
	won := 0
	for _, o := range slices.Concat(of, []*contender{&next}) {
		if o.won {
			won++
		}
		if o.subject != "" && o.subject != next.subject {
			t.Errorf("%s has two subjects, %s and %s", o.external, o.subject, next.subject)
		}
	}
	if won > 1 {
		t.Errorf("%s was registered %d times", next.external, won)
	}
	return next.won && took > time.Second
}
