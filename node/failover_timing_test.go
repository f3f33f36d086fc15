package node_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"facet/internal/must"
	"facet/node"
	"facet/node/nodetest"
	"facet/node/sigv4"
	"facet/node/transport"
	"facet/node/wire"
)

// nodeProcess is the variable that makes this test's binary a node: the file of its
// configuration.
const nodeProcess = "FACET_TEST_NODE"

func TestMain(m *testing.M) {
	if file := os.Getenv(nodeProcess); file != "" {
		if err := runProcess(file); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// runProcess is a node until SIGTERM.
func runProcess(file string) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var cfg node.Config
	if err := json.Unmarshal(raw, &cfg); err != nil {
		return err
	}
	cfg.Extractor, cfg.Table, cfg.Network = nodetest.HashExtractor{}, nodetest.Table(), transport.OS{}
	cfg.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	told, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	n, err := node.Open(told, cfg)
	if err != nil {
		return err
	}
	select {
	case <-told.Done():
	case <-n.Done():
		return n.Err()
	}
	closing, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return n.Close(closing)
}

const (
	failoverShards = 4
	// failoverWatch is how long after a fault writes are looked at.
	failoverWatch = 6 * time.Second
	// failoverEvery is how often a write to each shard begins.
	failoverEvery = 10 * time.Millisecond
	// failoverInFlight bounds the writes to one shard that wait for their answer.
	failoverInFlight = 64
	// failoverLong is the gap from which on the nodes' logs are shown.
	failoverLong = 500 * time.Millisecond
)

// fleet is a cluster whose nodes are processes of their own.
type fleet struct {
	b       *testing.B
	cluster *nodetest.Cluster
	client  *nodetest.Client
	keys    [failoverShards + 1]string // by shard: of a registration that goes there
	procs   []*exec.Cmd
}

// newFleet founds a cluster in this process, and then runs its nodes as others.
func newFleet(b *testing.B) *fleet {
	f := &fleet{b: b, cluster: nodetest.Start(b, nodetest.Options{Shards: failoverShards, SlotsPerShard: 100})}
	f.client = f.cluster.Client("bank")
	base := f.cluster.Nodes[0].URL
	gallery(b, f.client, base, "staff", 1000)
	for n, missing := 0, failoverShards; missing > 0; n++ {
		var s subject
		key := fmt.Sprint("probe-", n)
		f.client.Call(b, base, http.MethodPost, "/v1.1/subjects", probeBody, sigv4.Header{Name: "idempotency-key", Value: key}).Decode(b, &s)
		if shard := parsed(b, s.ID).Shard(); f.keys[shard] == "" {
			f.keys[shard] = key
			missing--
		}
	}
	f.cluster.Close()
	for i, m := range f.cluster.Nodes {
		cfg := m.Config
		cfg.Extractor, cfg.Table, cfg.Network, cfg.Log = nil, nil, nil, nil
		raw, err := json.Marshal(cfg)
		if err == nil {
			err = os.WriteFile(f.file(i, "json"), raw, 0o600)
		}
		must.Do(b, err)
		f.procs = append(f.procs, nil)
		f.start(i)
	}
	b.Cleanup(func() {
		for i := range f.procs {
			f.end(i, syscall.SIGKILL)
		}
	})
	return f
}

// probeBody is the one registration, again and again: with its key it is a write
// through the shard's log each time, and changes nothing.
var probeBody = map[string]any{"face": nodetest.Image("probe")}

func (f *fleet) file(i int, kind string) string {
	return filepath.Join(f.cluster.Nodes[i].Config.Certificates, "node."+kind)
}

func (f *fleet) start(i int) {
	log, err := os.OpenFile(f.file(i, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		f.b.Fatal(err)
	}
	defer log.Close() // the child has its own handle
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), nodeProcess+"="+f.file(i, "json"))
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		f.b.Fatal(err)
	}
	f.procs[i] = cmd
}

func (f *fleet) end(i int, s syscall.Signal) {
	if cmd := f.procs[i]; cmd != nil {
		_ = cmd.Process.Signal(s) // it may have ended
		_ = cmd.Wait()            // killed: not a success
		f.procs[i] = nil
	}
}

// leads returns the shards that each node leads, once every shard has a leader and all
// nodes serve.
func (f *fleet) leads() [][]int {
	for late := time.Now().Add(time.Minute); time.Now().Before(late); time.Sleep(100 * time.Millisecond) {
		led := make([][]int, len(f.procs))
		all, serving := 0, 0
		for i, m := range f.cluster.Nodes {
			if _, ready := ask(m, wire.PathReady); !ready {
				break
			}
			serving++
			samples, _ := ask(m, wire.PathMetrics)
			for shard := 1; shard <= failoverShards; shard++ {
				if strings.Contains(samples, fmt.Sprintf("facet_group_leader{group=\"%d\"} 1\n", shard)) {
					led[i] = append(led[i], shard)
					all++
				}
			}
		}
		if all == failoverShards && serving == len(f.procs) {
			return led
		}
	}
	f.b.Fatal("not every shard has a leader within a minute")
	return nil
}

// ask asks the admin port of a node that may not run.
func ask(m *nodetest.Member, path string) (body string, ok bool) {
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true, // whose certificate it is, others test
	}}
	res, err := client.Get("https://" + m.Config.AdminAddress + path)
	if err != nil {
		return "", false
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	return string(raw), err == nil && res.StatusCode == http.StatusOK
}

// ack is a write that was acknowledged.
type ack struct{ began, ended time.Time }

// prober writes to one shard at a steady pace, whatever becomes of the writes.
type prober struct {
	f       *fleet
	shard   int
	every   time.Duration // how often a write begins
	slots   chan struct{}
	work    sync.WaitGroup
	mu      sync.Mutex // guards acks
	acks    []ack
	refused atomic.Int64 // answers 5xx
	lost    atomic.Int64 // writes that were given up
}

func (p *prober) run(ctx context.Context) {
	tick := time.NewTicker(p.every)
	defer tick.Stop()
	for n := p.shard; ; n++ {
		select {
		case <-ctx.Done():
			p.work.Wait()
			return
		case <-tick.C:
		}
		select {
		case p.slots <- struct{}{}:
			p.work.Go(func() {
				p.write(n)
				<-p.slots
			})
		default: // all wait
		}
	}
}

// write sends one write to the nodes in turn until one acknowledges it.
func (p *prober) write(n int) {
	f, began := p.f, time.Now()
	for try := 0; time.Since(began) < 15*time.Second; try++ {
		base := f.cluster.Nodes[(n+try)%len(f.cluster.Nodes)].URL
		ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
		r, err := f.client.Sign(base, http.MethodPost, "/v1.1/subjects", probeBody, sigv4.Header{Name: "idempotency-key", Value: f.keys[p.shard]})
		var a nodetest.Answer
		if err == nil {
			a, err = f.client.Send(ctx, base, r)
		}
		cancel()
		switch {
		case err != nil:
			time.Sleep(time.Millisecond)
		case a.Status == http.StatusCreated:
			p.mu.Lock()
			p.acks = append(p.acks, ack{began, time.Now()})
			p.mu.Unlock()
			return
		default:
			p.refused.Add(1)
			time.Sleep(5 * time.Millisecond)
		}
	}
	p.lost.Add(1)
}

// gap returns the longest time without an acknowledgement in the window that begins at
// from, and what the slowest write took that was under way then.
func (p *prober) gap(from time.Time) (gap, slowest time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	until := from.Add(failoverWatch)
	slices.SortFunc(p.acks, func(a, b ack) int { return a.ended.Compare(b.ended) })
	last := from
	for _, a := range p.acks {
		if a.ended.Before(from) || a.ended.After(until) {
			continue
		}
		gap, slowest = max(gap, a.ended.Sub(last)), max(slowest, a.ended.Sub(a.began))
		last = a.ended
	}
	return max(gap, until.Sub(last)), slowest
}

// round ends a node that leads and gives the gaps of the shards that it led.
func (f *fleet) round(s syscall.Signal) (gaps, slowest []time.Duration, refused, lost int64) {
	led := f.leads()
	victim := 0
	for i := range led {
		if len(led[i]) > len(led[victim]) {
			victim = i
		}
	}
	var probers []*prober
	var work sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	for shard := 1; shard <= failoverShards; shard++ {
		p := &prober{f: f, shard: shard, every: failoverEvery, slots: make(chan struct{}, failoverInFlight)}
		probers = append(probers, p)
		work.Go(func() { p.run(ctx) })
	}
	time.Sleep(time.Second)
	from := time.Now()
	f.end(victim, s)
	time.Sleep(time.Until(from.Add(failoverWatch)))
	cancel()
	work.Wait()
	f.start(victim)
	for _, p := range probers {
		refused, lost = refused+p.refused.Load(), lost+p.lost.Load()
		if !slices.Contains(led[victim], p.shard) {
			continue
		}
		g, slow := p.gap(from)
		gaps, slowest = append(gaps, g), append(slowest, slow)
	}
	if slices.Max(append(gaps, 0)) > failoverLong {
		fmt.Fprintf(os.Stderr, "node %d ended at %v; gaps of shards %v: %v\n", victim+1, from.UTC().Format(time.StampMilli), led[victim], gaps)
		f.printLogs(from)
	}
	f.b.Logf("node %d led %v: gaps %v, slowest writes %v", victim+1, led[victim], gaps, slowest)
	return gaps, slowest, refused, lost
}

// printLogs prints what the nodes logged around a fault. The benchmark's own log is cut.
func (f *fleet) printLogs(from time.Time) {
	for i := range f.procs {
		raw, err := os.ReadFile(f.file(i, "log"))
		if err != nil {
			f.b.Error(err)
			continue
		}
		for line := range strings.Lines(string(raw)) {
			stamp, _, _ := strings.Cut(strings.TrimPrefix(line, "time="), " ")
			at, err := time.Parse(time.RFC3339Nano, stamp)
			if err == nil && at.After(from.Add(-time.Second)) && at.Before(from.Add(2*time.Second)) {
				fmt.Fprintf(os.Stderr, "node %d: %s", i+1, line)
			}
		}
	}
}

// BenchmarkFailover ends a node of three, each a process of its own, that leads
// shards, once in each round: how long is no write to them acknowledged? Writes begin
// every 10 ms to each shard through all nodes in turn, with the next node when one
// does not answer. slow is what the slowest write took, refused counts answers 5xx of
// a round, lost the writes that were given up after 15 s.
//
// Goals: after a stop (SIGTERM) max ≤ 200 ms; after a kill (SIGKILL) p50 ≤ 1 s and
// max ≤ 2.5 s; nothing lost.
func BenchmarkFailover(b *testing.B) {
	for name, s := range map[string]syscall.Signal{"stop": syscall.SIGTERM, "kill": syscall.SIGKILL} {
		b.Run(name, func(b *testing.B) {
			f := newFleet(b)
			var gaps, slowest []time.Duration
			var refused, lost int64
			for b.Loop() {
				g, slow, r, l := f.round(s)
				gaps, slowest = append(gaps, g...), append(slowest, slow...)
				refused, lost = refused+r, lost+l
			}
			ms := func(times []time.Duration, q float64) float64 {
				slices.Sort(times)
				return float64(times[int(q*float64(len(times)-1))].Microseconds()) / 1000
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(ms(gaps, .5), "p50-ms")
			b.ReportMetric(ms(gaps, .99), "p99-ms")
			b.ReportMetric(ms(gaps, 1), "max-ms")
			b.ReportMetric(ms(slowest, 1), "slow-ms")
			b.ReportMetric(float64(refused)/float64(b.N), "refused/op")
			b.ReportMetric(float64(lost), "lost")
		})
	}
}
