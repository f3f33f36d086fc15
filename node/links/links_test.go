package links

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"facet/internal/id"
	"facet/node/membership"
	"facet/node/transport"
)

func nodeNumber(n byte) id.Node { return id.Node{UUID: id.Random([16]byte{n})} }

// A link is cut when a third node heard from the other end later, and only while that word
// is fresh. It is whole again when the other end has answered for a while.
func TestLinkIsCutByLaterWord(t *testing.T) {
	t.Parallel()
	routes := map[string]transport.Route{}
	l := New(Config{Node: nodeNumber(1), Name: id.Node.String, Log: slog.New(slog.DiscardHandler)})
	l.route = func(address string, r transport.Route) { routes[address] = r }
	began := time.Now()
	far := &link{node: nodeNumber(2), address: "two", last: began}
	relay := &link{node: nodeNumber(3), address: "three"}
	l.links = map[id.Node]*link{far.node: far, relay.node: relay}
	f := func(what string, now, heard time.Duration, through string) {
		t.Helper()
		relay.last = began.Add(now)
		relay.heard = map[id.Node]time.Time{far.node: began.Add(heard)}
		l.judge(far, began.Add(now))
		if got := routes["two"]; got.Through != through || len(l.Cut()) > 0 != (through != "") {
			t.Errorf("%s: the route is %+v and the cut links %+v, want a route through %q", what, got, l.Cut(), through)
		}
	}
	f("both heard from it", 300*time.Millisecond, 300*time.Millisecond, "")
	f("it died after the other heard from it", 5*time.Second, 900*time.Millisecond, "")
	f("the other heard from it later", 1500*time.Millisecond, 1100*time.Millisecond, "three")
	f("still", 8*time.Second, 7*time.Second, "three")
	far.note(began.Add(8*time.Second), began.Add(8*time.Second), true, heard{})
	f("it answers again", 9*time.Second, 9*time.Second, "three")
	far.note(began.Add(9*time.Second), began.Add(9*time.Second), false, heard{})
	f("and fails again", 11*time.Second, 11*time.Second, "three")
	f("the other has no word of it any more", 15*time.Second, 11*time.Second, "")
	f("the other heard from it again", 16*time.Second, 16*time.Second, "three")
	far.note(began.Add(16*time.Second), began.Add(16*time.Second), true, heard{})
	f("it answered once, and a question hangs", 20*time.Second, 19*time.Second, "three")
	far.note(began.Add(20*time.Second), began.Add(20*time.Second), false, heard{})
	far.note(began.Add(21*time.Second), began.Add(21*time.Second), true, heard{})
	far.note(began.Add(23*time.Second), began.Add(23*time.Second), true, heard{})
	f("it has answered for two seconds", 23*time.Second, 23*time.Second, "")
}

// An answer is compared with the links to the nodes that it names.
func TestAnswerCutsLink(t *testing.T) {
	t.Parallel()
	routes := map[string]transport.Route{}
	l := New(Config{Node: nodeNumber(1), Name: id.Node.String, Log: slog.New(slog.DiscardHandler)})
	l.route = func(address string, r transport.Route) { routes[address] = r }
	far := &link{node: nodeNumber(2), address: "two", last: time.Now().Add(-2 * cutAfter)}
	relay := &link{node: nodeNumber(3), address: "three", last: time.Now()}
	l.links = map[id.Node]*link{far.node: far, relay.node: relay}
	f := func(ago time.Duration, through string) {
		t.Helper()
		l.call = func(context.Context, *link) ([]byte, error) {
			return json.Marshal(heard{Ago: map[id.Node]int64{far.node: ago.Milliseconds()}})
		}
		l.ask(t.Context(), relay)
		if got := routes["two"]; got.Through != through {
			t.Errorf("heard %s ago: the route is %+v, want one through %q", ago, got, through)
		}
	}
	f(2*cutAfter, "")
	f(0, "three")
	f(2*relayAge, "") // nobody reaches it any more
}

// While a node is silent the others are asked more often what they heard from it.
func TestSilenceMakesQuestionsMoreFrequent(t *testing.T) {
	t.Parallel()
	l := New(Config{Log: slog.New(slog.DiscardHandler)})
	now := time.Now()
	k := &link{last: now}
	l.links = map[id.Node]*link{nodeNumber(2): k, nodeNumber(3): {last: now}}
	f := func(ago time.Duration, cut bool, want time.Duration) {
		t.Helper()
		k.last, k.cut = now.Add(-ago), time.Time{}
		if cut {
			k.cut = now
		}
		if got := l.interval(now); got != want {
			t.Errorf("heard %s ago, cut %t: the next question comes after %s, want %s", ago, cut, got, want)
		}
	}
	f(0, false, restInterval)
	f(restInterval+50*time.Millisecond, false, restInterval) // it is about to answer
	f(cutAfter, false, askInterval)
	f(0, true, askInterval)
}

// Each link is watched until its own node is absent.
func TestAbsentNodeEndsOwnWatchOnly(t *testing.T) {
	t.Parallel()
	l := New(Config{Node: nodeNumber(1), Name: id.Node.String, Log: slog.New(slog.DiscardHandler)})
	l.route = func(string, transport.Route) {}
	asked := make(chan id.Node)
	l.call = func(ctx context.Context, k *link) ([]byte, error) {
		select {
		case asked <- k.node:
			return []byte("{}"), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	present := make([]membership.Member, 4)
	for i := range present {
		present[i] = membership.Member{Meta: membership.Meta{Member: id.NewMember(nodeNumber(byte(i+2)), 1), Address: fmt.Sprintf("node-%d", i+2)}}
	}
	l.compare(ctx, present, &work)
	for len(present) > 1 {
		present = present[1:]
		l.compare(ctx, present, &work)
		waiting := map[id.Node]bool{}
		for _, m := range present {
			node, _ := m.Member.Node()
			waiting[node] = true
		}
		for len(waiting) > 0 {
			select {
			case node := <-asked:
				delete(waiting, node)
			case <-time.After(10 * time.Second):
				t.Fatalf("nobody asks %v", waiting)
			}
		}
	}
}
