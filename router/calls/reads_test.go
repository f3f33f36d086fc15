package calls

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"facet/internal/id"
	"facet/raftfsm"
)

// fleet are nodes with three replicas of each group. Their requests take time, and their answers are those
// of real Callers.
type fleet struct {
	groups int
	nodes  []*Caller
	alike  []*machine
	sole   id.Shard // a group with one replica; 0: none

	mu   sync.Mutex // guards sent
	sent map[id.Member][]string
}

// machine is one node of a fleet.
type machine struct {
	f      *fleet
	member id.Member
	meter  counted

	mu     sync.Mutex // guards all below
	random *rand.Rand
	read   func(id.Shard) (time.Duration, error) // nil: usual
	dead   bool
}

const fleetWay = 50 * time.Microsecond // one way between two nodes

func (m *machine) Group(id.Shard) (*raftfsm.Group, bool) { return nil, false }
func (m *machine) Out(id.Shard) bool                     { return false }
func (m *machine) Self() id.Member                       { return m.member }

// Members places each group on three nodes. The groups of a node have their others on many nodes.
func (m *machine) Members(group id.Shard) (list []id.Member) {
	n := len(m.f.alike)
	step := 1 + int(group)/n%max(1, (n-1)/2)
	for i := range 3 {
		if i > 0 && group == m.f.sole {
			break
		}
		list = append(list, m.f.alike[(int(group)+i*step)%n].member)
	}
	return list
}

func (m *machine) Call(ctx context.Context, to id.Member, method string, body []byte) ([]byte, error) {
	at := slices.IndexFunc(m.f.alike, func(o *machine) bool { return o.member == to })
	m.f.mu.Lock()
	m.f.sent[to] = append(m.f.sent[to], method)
	m.f.mu.Unlock()
	time.Sleep(fleetWay)
	m.f.alike[at].mu.Lock()
	dead := m.f.alike[at].dead
	m.f.alike[at].mu.Unlock()
	if dead {
		return nil, Unreachable(errors.New("connection refused"))
	}
	b, err := m.f.nodes[at].Serve(ctx, method, body)
	if time.Sleep(fleetWay); ctx.Err() != nil {
		return nil, Unreachable(ctx.Err())
	}
	if err != nil {
		return nil, DecodeFault(EncodeFault(err))
	}
	return b, nil
}

// fleetRead answers with the group. It takes 2 ms in the median and 10 ms in one of a hundred reads.
var fleetRead = Method[*machine, string, string]{"test.read", func(ctx context.Context, m *machine, group id.Shard, q string) (string, error) {
	m.mu.Lock()
	takes, err := time.Duration(float64(2*time.Millisecond)*lognormal(m.random)), error(nil)
	if m.read != nil {
		takes, err = m.read(group)
	}
	m.mu.Unlock()
	if sleep(ctx, takes, nil) != nil {
		return "", ctx.Err()
	}
	return fmt.Sprint(q, group), err
}}

func newFleet(nodes, groups int) *fleet {
	f := &fleet{groups: groups, sent: map[id.Member][]string{}}
	for i := range nodes {
		m := &machine{f: f, member: id.Member(fmt.Sprintf("n%02d", i)), random: rand.New(rand.NewPCG(1, uint64(i)))} //nolint:gosec // the same times in each run
		f.alike = append(f.alike, m)
		c := New(Config{Groups: m, Peers: m, Log: slog.New(slog.DiscardHandler), Meter: &m.meter})
		Add(c, m, fleetRead)
		f.nodes = append(f.nodes, c)
	}
	return f
}

// set changes how the reads of a node go.
func (f *fleet) set(node int, read func(id.Shard) (time.Duration, error)) {
	f.alike[node].mu.Lock()
	defer f.alike[node].mu.Unlock()
	f.alike[node].read = read
}

// search reads all groups through a node, and returns the requests that it sent to others.
func (f *fleet) search(t *testing.T, node int) (sent map[id.Member][]string, took time.Duration) {
	t.Helper()
	f.mu.Lock()
	clear(f.sent)
	f.mu.Unlock()
	groups := make([]id.Shard, f.groups)
	for i := range groups {
		groups[i] = id.Shard(i + 1)
	}
	began := time.Now()
	answers, err := ScatterAny(t.Context(), f.nodes[node], fleetRead, groups, "of ")
	took = time.Since(began)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range answers {
		if want := fmt.Sprint("of ", groups[i]); a != want {
			t.Errorf("got %q, want %q", a, want)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	sent = map[id.Member][]string{}
	for m, list := range f.sent {
		sent[m] = slices.Clone(list)
	}
	return sent, took
}

func (f *fleet) close() {
	for _, c := range f.nodes {
		c.Close()
	}
}

func inFleet(t *testing.T, nodes, groups int, do func(t *testing.T, f *fleet)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(nodes, groups)
		do(t, f)
		f.close()
	})
}

func steady(id.Shard) (time.Duration, error) { return 2 * time.Millisecond, nil }

func TestSearchSendsNodeOneRequest(t *testing.T) {
	inFleet(t, 5, 40, func(t *testing.T, f *fleet) {
		for i := range f.nodes {
			f.set(i, steady)
		}
		sent, _ := f.search(t, 0)
		if len(sent) != 4 {
			t.Errorf("asked %d other nodes, want 4", len(sent))
		}
		for m, list := range sent {
			if len(list) != 1 || list[0] != methodGrouped {
				t.Errorf("%s was sent %q", m, list)
			}
		}
	})
}

// The groups of a node that is late are asked elsewhere, in one request for each other node.
func TestLateNodesGroupsAreAskedTogether(t *testing.T) {
	inFleet(t, 5, 40, func(t *testing.T, f *fleet) {
		for i := range f.nodes {
			f.set(i, steady)
		}
		for range 10 {
			f.search(t, 0)
		}
		f.set(1, func(id.Shard) (time.Duration, error) { return time.Second, nil })
		sent, took := f.search(t, 0)
		if took > 2*hedgeLeast {
			t.Errorf("a search took %s beside a node that takes a second", took)
		}
		for m, list := range sent {
			if len(list) > 2 {
				t.Errorf("%s was sent %q", m, list)
			}
		}
	})
}

// A group that its node can't answer is asked elsewhere. The others' answers count.
func TestGroupsErrorIsItsOwn(t *testing.T) {
	inFleet(t, 5, 40, func(t *testing.T, f *fleet) {
		failed := atomic.Int64{}
		for i := range f.nodes {
			f.set(i, steady)
		}
		f.set(1, func(g id.Shard) (time.Duration, error) {
			if failed.Add(1) == 1 {
				return time.Millisecond, fmt.Errorf("read of %d: %w", g, raftfsm.ErrClosed)
			}
			return time.Millisecond, nil
		})
		sent, _ := f.search(t, 0)
		requests := 0
		for _, list := range sent {
			requests += len(list)
		}
		if failed.Load() < 2 || requests > 5 {
			t.Errorf("%d reads of the node with a replica out of service, %d requests", failed.Load(), requests)
		}
	})
}

// A node that is down is asked once: its groups go to their other replicas.
func TestDeadNodesGroupsGoElsewhere(t *testing.T) {
	inFleet(t, 5, 40, func(t *testing.T, f *fleet) {
		f.alike[1].dead = true
		sent, _ := f.search(t, 0)
		for m, list := range sent {
			if len(list) > 2 || slices.Contains(list, fleetRead.Name) && m == f.alike[1].member {
				t.Errorf("%s was sent %q", m, list)
			}
		}
		if again, _ := f.search(t, 0); len(again[f.alike[1].member]) > 0 {
			t.Errorf("the dead node was sent %q", again[f.alike[1].member])
		}
	})
}

// A fault of the only replica is the answer.
func TestSoleReplicasFaultEndsSearch(t *testing.T) {
	inFleet(t, 5, 40, func(t *testing.T, f *fleet) {
		f.sole = 26
		f.set(1, func(g id.Shard) (time.Duration, error) { return 0, fmt.Errorf("read of %d failed", g) })
		var groups []id.Shard
		for g := range id.Shard(40) {
			groups = append(groups, g+1)
		}
		_, err := ScatterAny(t.Context(), f.nodes[4], fleetRead, groups, "of ")
		if err == nil || KindOf(err) != 0 || Again(err) {
			t.Errorf("got %v", err)
		}
	})
}

// One answer that is an error of the request ends the search with it.
func TestRefusedGroupEndsSearch(t *testing.T) {
	inFleet(t, 3, 12, func(t *testing.T, f *fleet) {
		f.set(2, func(id.Shard) (time.Duration, error) { return 0, Errorf(Outdated, "", "an old list") })
		_, err := ScatterAny(t.Context(), f.nodes[0], fleetRead, []id.Shard{1, 2, 3, 4, 5, 6}, "of ")
		if KindOf(err) != Outdated {
			t.Errorf("got %v", err)
		}
	})
}

// Answers that are too large together are asked for again, group by group.
func TestAnswersOfNodeAreBounded(t *testing.T) {
	t.Parallel()
	f := newFleet(1, 3)
	Add(f.nodes[0], f.alike[0], Method[*machine, string, string]{"test.large", func(context.Context, *machine, id.Shard, string) (string, error) {
		return strings.Repeat("x", answersBytesMax*2/5), nil
	}})
	query, _ := wireEnc.Marshal("")
	body, err := wireEnc.Marshal(grouped{Method: "test.large", Groups: []id.Shard{1, 2, 3}, Query: query})
	if err != nil {
		t.Fatal(err)
	}
	b, err := f.nodes[0].Serve(t.Context(), methodGrouped, body)
	if err != nil || len(b) > answersBytesMax {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	var answers []groupAnswer
	if err := wireDec.Unmarshal(b, &answers); err != nil {
		t.Fatal(err)
	}
	left := 0
	for _, a := range answers {
		if a.Fault != nil {
			if left++; !Again(DecodeFault(a.Fault)) {
				t.Errorf("a group without room: %v", DecodeFault(a.Fault))
			}
		}
	}
	if left != 1 {
		t.Errorf("%d of 3 answers found no room, want 1", left)
	}
}

func TestRequestForTooManyGroupsIsRefused(t *testing.T) {
	t.Parallel()
	f := newFleet(1, 3)
	for _, q := range []grouped{{Method: fleetRead.Name}, {Method: fleetRead.Name, Groups: make([]id.Shard, groupsMax+1)}, {Method: "no", Groups: []id.Shard{1}}} {
		body, err := wireEnc.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := f.nodes[0].Serve(t.Context(), methodGrouped, body); err == nil {
			t.Errorf("%s of %d groups: %x", q.Method, len(q.Groups), b)
		}
	}
}

// lognormal returns a factor of 1 in the median and 5 in one of a hundred.
func lognormal(r *rand.Rand) float64 {
	const spread = 1.609 / 2.326 // ln 5 over the 99th percentile of the normal distribution
	return math.Exp(spread * r.NormFloat64())
}

// In a search of 100 nodes and 1,000 shards some node always takes long. One slow node makes the slowest
// searches hardly slower.
func TestSlowNodeCostsFewMilliseconds(t *testing.T) {
	inFleet(t, 100, 1000, func(t *testing.T, f *fleet) {
		without := f.p99(t)
		before := f.alike[0].meter.hedged.Load()
		f.set(17, func(id.Shard) (time.Duration, error) { return 100 * time.Millisecond, nil })
		if with := f.p99(t); with > without*3/2 {
			t.Errorf("p99 of a search %s with a node that takes .1 s, %s without", with, without)
		}
		if n := f.alike[0].meter.hedged.Load() - before; n > (p99Searches+p99Settle)*1000/hedgeShare+hedgesMax {
			t.Errorf("%d hedges", n)
		}
	})
}

// Where all reads take 2 ms, one at a slow node costs what makes it late, and a second read.
func TestSlowNodeAmongSteadyOnes(t *testing.T) {
	inFleet(t, 100, 1000, func(t *testing.T, f *fleet) {
		for i := range f.nodes {
			f.set(i, func(id.Shard) (time.Duration, error) { return 2 * time.Millisecond, nil })
		}
		without := f.p99(t)
		f.set(17, func(id.Shard) (time.Duration, error) { return 30 * time.Millisecond, nil })
		if with := f.p99(t); with > hedgeLeast+2*without {
			t.Errorf("p99 of a search %s with a node that takes 30 ms, %s without", with, without)
		}
	})
}

const p99Searches, p99Settle = 100, 15

// p99 returns that of the next searches, after some others.
func (f *fleet) p99(t *testing.T) time.Duration {
	t.Helper()
	var times []time.Duration
	for i := range p99Settle + p99Searches {
		_, took := f.search(t, 0)
		if i >= p99Settle {
			times = append(times, took)
		}
		time.Sleep(5 * time.Millisecond)
	}
	slices.Sort(times)
	t.Logf("p50 %s, p99 %s, longest %s", times[len(times)/2], times[len(times)*99/100-1], times[len(times)-1])
	return times[len(times)*99/100-1]
}

// A request that outlives its time at a node's stop reads on while the caller closes, and after it.
func TestCloseBearsReadsThatComeLate(t *testing.T) {
	t.Parallel()
	f := newFleet(1, 1)
	f.set(0, func(id.Shard) (time.Duration, error) { return 0, nil })
	var late sync.WaitGroup
	for range 4 {
		late.Go(func() {
			for range 2000 {
				f.search(t, 0)
			}
		})
	}
	done := make(chan struct{})
	go func() { late.Wait(); close(done) }()
	for {
		f.close()
		select {
		case <-done:
			return
		default:
		}
	}
}
