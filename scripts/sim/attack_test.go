package sim

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"facet/internal/id"
	"facet/node/nodetest"
	"facet/node/sigv4"
	"facet/node/transport/memnet"
	"facet/node/wire"
	"facet/scripts/chaos/ledger"
	"facet/scripts/chaos/traffic"
)

const (
	// attackTry is the longest time for one attempt of a request, attackHeal the
	// longest wait for a cluster to become healthy.
	attackTry  = 6 * time.Second
	attackHeal = 5 * time.Minute
	// faultsDefault is the number of faults of a world in an ordinary test run.
	faultsDefault = 20
	// logMax is the most bytes kept of a world's log.
	logMax = 8 << 20
)

var (
	attacksFor    = flag.Duration("attacks-for", 0, "real time for attacked worlds, one after the other")
	attackSeed    = flag.Uint64("attack-seed", 0, "seed of the first attacked world; the next has the next")
	attackFaults  = flag.Int("attack-faults", faultsDefault, "faults of each attacked world")
	attackOnly    = flag.String("attack-only", "", "comma-separated names of the faults to choose from; all when empty")
	attackWorkers = flag.Int("attack-workers", 6, "clients of each attacked world")
	attackPace    = flag.Duration("attack-pace", 150*time.Millisecond, "a client's pause between two requests")
	attackGrow    = flag.Bool("attack-grow", true, "let the gallery grow over the shards meanwhile")
	evidence      = flag.String("evidence", "", "folder for logs and histories of worlds that failed")
)

// attackedWorld is a world under attack.
type attackedWorld struct {
	*world
	random *rand.Rand
	counts map[string]int
	log    *logbook
	// effects contains the changes of links by the present faults.
	effects map[int]map[[2]string]memnet.Link
	made    int // number of effects so far
	story   []string
	losses  []ledger.Loss // of disks
	ids     []id.Node
}

// logbook keeps the newest part of the nodes' logs.
type logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logbook) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.text.Len() > logMax {
		l.text.Next(logMax / 2)
	}
	return l.text.Write(b)
}

// caller sends the requests of one API key to the nodes (traffic.Sender).
type caller struct {
	*world
	client nodetest.Client
}

func (w *world) caller(c *nodetest.Client) func(apiKey string) traffic.Sender {
	return func(apiKey string) traffic.Sender {
		of := caller{w, *c}
		of.client.APIKey = apiKey
		return of
	}
}

func (c caller) Nodes() (names []string) {
	for _, m := range c.cluster.Nodes {
		names = append(names, m.Config.Name)
	}
	return names
}

func (c caller) Try(ctx context.Context, n int, r traffic.Request) (traffic.Answer, error) {
	m := c.cluster.Nodes[n%len(c.cluster.Nodes)]
	var headers []sigv4.Header
	if r.Key != "" {
		headers = append(headers, sigv4.Header{Name: "idempotency-key", Value: r.Key})
	}
	if r.Purpose != "" {
		headers = append(headers, sigv4.Header{Name: "x-purpose", Value: r.Purpose})
	}
	signed, err := c.client.Sign(m.URL, r.Method, r.Target, r.Body, headers...)
	if err != nil {
		return traffic.Answer{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, attackTry)
	defer cancel()
	a, err := c.client.Send(ctx, m.URL, signed)
	return traffic.Answer{Status: a.Status, Body: a.Body, Node: m.Config.Name, ID: a.Header.Get("x-request-id")}, err
}

// say adds a line to the story.
func (s *attackedWorld) say(format string, args ...any) {
	s.story = append(s.story, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// rounds attacks until this number of faults is reached, or something has failed.
func (s *attackedWorld) rounds(faults int) {
	choice := slices.DeleteFunc(slices.Clone(attacks), func(a assault) bool {
		return *attackOnly != "" && !slices.Contains(strings.Split(*attackOnly, ","), a.name) || len(s.cluster.Nodes) < a.nodes
	})
	for total := 0; total < faults && !s.t.Failed(); {
		var undo []func()
		var longest time.Duration
		for _, b := range s.plan(choice) {
			last := time.Duration(s.random.Int64N(int64(b.most)))
			s.say("%s n%d for %s", b.name, b.victim+1, last)
			s.counts[b.name]++
			total++
			undo, longest = append(undo, b.begin(s, b.victim)), max(longest, last)
		}
		time.Sleep(longest)
		for _, back := range slices.Backward(undo) {
			back()
		}
		time.Sleep(time.Duration(s.random.Int64N(int64(2 * time.Second))))
	}
	s.say("healed")
}

// plannedFault is one fault of a round.
type plannedFault struct {
	assault
	victim int
}

// plan draws the faults of a round: one, or two to different nodes. Orders come
// first, so that their effect is awaited after all other faults are undone.
func (s *attackedWorld) plan(choice []assault) (list []plannedFault) {
	gone := 0
	for _, victim := range s.random.Perm(len(s.cluster.Nodes))[:1+s.random.IntN(2)] {
		b := plannedFault{choice[s.random.IntN(len(choice))], victim}
		if b.rare && s.random.IntN(4) > 0 || b.lone && len(list) > 0 {
			continue
		}
		if b.nodes > 0 && len(list) > 0 && list[0].nodes > 0 { // one order could refuse the other
			continue
		}
		if b.grave {
			if gone++; gone > (len(s.cluster.Nodes)-1)/2 {
				continue
			}
		}
		list = append(list, b)
		if b.lone {
			break
		}
	}
	slices.SortStableFunc(list, func(a, b plannedFault) int { return strings.Compare(a.first(), b.first()) })
	return list
}

// first sorts orders before other faults.
func (b plannedFault) first() string {
	if b.nodes > 0 {
		return ""
	}
	return "other"
}

// whole waits until every node reports that nothing is wrong.
func (s *attackedWorld) whole() error {
	var last wire.Status
	for began := time.Now(); time.Since(began) < attackHeal; time.Sleep(200 * time.Millisecond) {
		ok := true
		for _, m := range s.cluster.Nodes {
			last = m.Node.Status(s.t.Context())
			ok = ok && len(wounds(last.Warnings)) == 0 && len(last.Moves) == 0
		}
		if ok {
			return nil
		}
	}
	return fmt.Errorf("the cluster is not whole after %s: moves %+v, warnings %v", attackHeal, last.Moves, last.Warnings)
}

// settleWhole waits until the cluster is whole.
func (s *attackedWorld) settleWhole() {
	if err := s.whole(); err != nil {
		s.t.Error(err)
	}
}

// past are parts of warnings about what is over.
var past = []string{"was set aside and rebuilt", "had lost state", "has lost state and stopped", "two processes run as member"}

// wounds leaves out the warnings about what is over.
func wounds(warnings []string) []string {
	return slices.DeleteFunc(slices.Clone(warnings), func(w string) bool {
		return slices.ContainsFunc(past, func(part string) bool { return strings.Contains(w, part) })
	})
}

// tallyOf is the result of one world or more.
type tallyOf struct {
	faults              map[string]int
	answers, operations int
	records             ledger.Sum
}

// add adds the result of another world.
func (t *tallyOf) add(o tallyOf) {
	if t.faults == nil {
		t.faults = map[string]int{}
	}
	for name, n := range o.faults {
		t.faults[name] += n
	}
	t.answers += o.answers
	t.operations += o.operations
	t.records.Add(o.records)
}

// attackWorld attacks a world while clients work, and judges the answers that they got.
func attackWorld(t *testing.T, seed uint64) (sum tallyOf) {
	var clients *traffic.Traffic
	var s *attackedWorld
	var problem error
	dir := *evidence
	if dir == "" {
		dir = t.TempDir()
	}
	defer func() {
		if t.Failed() && s != nil {
			path := filepath.Join(dir, fmt.Sprintf("world-%d.log", seed))
			text := strings.Join(s.story, "\n") + "\n" + s.log.text.String()
			t.Logf("seed %d, log: %s (%v)\n%s", seed, path, errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(path, []byte(text), 0o600)), strings.Join(s.story, "\n"))
		}
	}()
	nodetest.Bubble(t, seed, func(t *testing.T) {
		s = &attackedWorld{
			random: rand.New(rand.NewPCG(seed, 7)), counts: map[string]int{}, log: &logbook{}, effects: map[int]map[[2]string]memnet.Link{},
		}
		nodes := []int{3, 4, 5}[seed%3]
		o := nodetest.Options{
			Nodes: nodes, SlotsPerShard: 2000, CheckEvery: 20 * time.Second, EraseWithin: 40 * time.Second,
			Log: slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelInfo})),
		}
		s.world = &world{t: t, cluster: nodetest.Start(t, o)}
		s.net = s.cluster.Network
		for _, m := range s.cluster.Nodes {
			s.ids = append(s.ids, m.Node.ID())
		}
		own, records := s.audited("bank", modes[seed%2])
		other := s.cluster.Client("stranger")
		plans := traffic.Options{Size: 8000, Pace: *attackPace}
		if *attackGrow {
			plans.Size, plans.Step, plans.SizeMax = 2000, 2000, 8000
		}
		var err error
		if clients, err = traffic.Open(t.Context(), func(apiKey string) traffic.Sender { return records.Sender(s.caller(own)(apiKey)) }, s.caller(other), plans); err != nil {
			t.Fatal(err)
		}
		stop, end := context.WithCancel(t.Context())
		give, giveUp := context.WithCancel(t.Context())
		var work sync.WaitGroup
		work.Go(func() { clients.Run(stop, give, *attackWorkers, seed) })
		work.Go(func() {
			if err := records.Watch(stop); err != nil {
				t.Error(err)
			}
		})
		s.rounds(*attackFaults)
		problem = s.whole()
		end()
		late := time.AfterFunc(attackHeal, giveUp)
		work.Wait()
		late.Stop()
		if problem == nil {
			problem = errors.Join(clients.Complete(give), s.audit(give, records, modes[seed%2], &sum.records))
		}
		giveUp()
		own.Close()
		other.Close()
		for i := range s.cluster.Nodes { // the last ones have no node to hand over to and take their time
			s.stop(i)
		}
	})
	problem = errors.Join(problem, traffic.Linearizable(clients.History, dir), traffic.UniquelyNamed(clients.Named), traffic.MergedWhole(clients.Paired))
	for wrong, times := range clients.Wrong {
		problem = errors.Join(problem, fmt.Errorf("%d ×: %s", times, wrong))
	}
	sum.faults = s.counts
	for _, n := range clients.Counts {
		sum.answers += n
	}
	sum.operations = len(clients.History)
	if problem != nil {
		t.Errorf("seed %d: %v", seed, problem)
	}
	return sum
}

// Nothing is lost, doubled or stale. This is the attack of scripts/chaos in virtual
// time: the same clients and the same judge, with faults of links and of nodes.
func TestNothingIsLostWhileWorldsAreAttacked(t *testing.T) {
	var sum tallyOf
	worlds := 0
	for began := time.Now(); worlds == 0 || time.Since(began) < *attacksFor && !t.Failed(); worlds++ {
		sum.add(attackWorld(t, *attackSeed+uint64(worlds)))
	}
	total := 0
	for _, n := range sum.faults {
		total += n
	}
	t.Logf("%d worlds from seed %d, %d faults %v, %d answers, %d operations", worlds, *attackSeed, total, sum.faults, sum.answers, sum.operations)
	t.Logf("audit: %s", sum.records)
}
