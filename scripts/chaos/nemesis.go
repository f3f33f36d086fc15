package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"facet/scripts/chaos/lan"
	"facet/scripts/chaos/ledger"
	"facet/scripts/chaos/power"
)

// togetherMax is the most faults that may start together with another one.
const togetherMax = 2

// nemesis injects faults into a cluster by a seeded schedule.
type nemesis struct {
	cluster *cluster
	clock   func(*process) error // checks that a node refuses wrong clocks
	gauge   func(p *process, name string) (float64, error)
	acked   func(shards []int, since time.Duration) int
	random  *rand.Rand
	rest    time.Duration // the longest pause between two rounds
	out     io.Writer
	start   time.Time

	counts  map[string]int
	windows []window
	end     time.Duration // when the nemesis and the clients stopped
	led     []int         // shards led by the victim of the fault that starts, if the fault is alone

	// losses are the losses of disks, with what lay on one node's disk only.
	losses []ledger.Loss

	cuts int        // losses of power, one for each disk
	lost power.Loss // the sum of all losses
}

// window is the time of one fault.
type window struct {
	fault    string
	from, to time.Duration // since the beginning
	alone    bool
	placed
}

// placed are the shards that a node leads, and those that it has a replica of.
type placed struct{ led, held []int }

// links changes the links between a node and all other nodes, but not its links to
// clients.
func (n *nemesis) links(p *process, from, to lan.Link) (undo func() error) {
	set := func(from, to lan.Link) {
		for _, other := range n.cluster.members() {
			if other != p {
				n.cluster.lan.Set(p.number, other.number, from)
				n.cluster.lan.Set(other.number, p.number, to)
			}
		}
	}
	set(from, to)
	return func() error { set(lan.Link{}, lan.Link{}); return nil }
}

// pair changes the link between two nodes, in each direction.
func (n *nemesis) pair(a, b *process, there, back lan.Link) (undo func() error) {
	n.cluster.lan.Set(a.number, b.number, there)
	n.cluster.lan.Set(b.number, a.number, back)
	return func() error {
		n.cluster.lan.Set(a.number, b.number, lan.Link{})
		n.cluster.lan.Set(b.number, a.number, lan.Link{})
		return nil
	}
}

// beside returns a node other than p.
func (n *nemesis) beside(p *process) *process {
	nodes := n.cluster.members()
	return nodes[(slices.Index(nodes, p)+1)%len(nodes)]
}

// can reports whether this run has what a fault needs.
func (n *nemesis) can(f fault) bool {
	c := n.cluster
	switch f.needs {
	case network:
		return c.lan != nil
	case disks:
		return c.disks
	case tracing:
		_, err := exec.LookPath("strace")
		return err == nil && c.lan != nil // loopback's user may not be allowed to
	case orders:
		return c.lan != nil
	case room:
		return c.lan != nil && c.Founders > replicas
	default:
		return true
	}
}

// strike is one fault of a round.
type strike struct {
	fault
	victim *process
	last   time.Duration
}

// draw draws a fault. Faults by orders take long, so draw draws them half as often.
func (n *nemesis) draw(choice []fault) fault {
	f := choice[n.random.IntN(len(choice))]
	if f.needs == orders || f.needs == room {
		f = choice[n.random.IntN(len(choice))]
	}
	return f
}

// plan draws the faults of a round: one fault, or several to different nodes.
func (n *nemesis) plan(choice []fault) []strike {
	nodes := n.cluster.members()
	together := 1 + n.random.IntN(1+min(togetherMax, len(nodes)-2))
	graves, ordering := 0, false
	var list []strike
	for _, v := range n.random.Perm(len(nodes))[:together] {
		s := strike{fault: n.draw(choice), victim: nodes[v]}
		s.last = time.Duration(float64(s.most) * math.Pow(n.random.Float64(), 2)) // mostly short
		if s.lone && len(choice) > 1 && (together > 1 || n.random.IntN(2) > 0) {
			continue // rarely, and alone
		}
		if s.needs == orders || s.needs == room {
			if ordering {
				continue
			}
			ordering = true
		}
		if s.grave {
			if graves++; graves > (len(nodes)-1)/2 {
				continue
			}
		}
		list = append(list, s)
	}
	// Orders come first, while the cluster can still take them. The other faults then
	// hit the cluster while it carries the orders out.
	slices.SortStableFunc(list, func(a, b strike) int { return -cmp.Compare(a.needs, b.needs) })
	return list
}

// run injects one round of faults after the other until stop ends, and leaves none in
// effect. only lists the names to choose from; an empty list means all.
func (n *nemesis) run(stop context.Context, only []string) error {
	var choice []fault
	for _, f := range slices.Concat(processFaults, networkFaults, diskFaults, powerFaults, orderFaults, lossFaults) {
		if (len(only) == 0 || slices.Contains(only, f.name)) && n.can(f) {
			choice = append(choice, f)
		}
	}
	if len(choice) == 0 {
		return fmt.Errorf("there is no fault to choose of %s", strings.Join(only, ", "))
	}
	for stop.Err() == nil {
		if err := n.round(stop, n.plan(choice)); err != nil {
			return err
		}
		if err := n.census(); err != nil {
			return err
		}
		pause(stop, time.Duration(n.random.Int64N(int64(n.rest))))
	}
	return nil
}

// round starts the faults of a round, waits, and undoes them, those by orders last.
func (n *nemesis) round(stop context.Context, list []strike) (err error) {
	var undo []func() error
	var wait time.Duration
	defer func() {
		for _, back := range slices.Backward(undo) {
			if failed := back(); err == nil {
				err = failed
			}
		}
		for i := range list {
			n.windows[len(n.windows)-1-i].to = time.Since(n.start)
		}
	}()
	places := n.places(list)
	for i, s := range list {
		n.say("%s %s for %s", s.name, s.victim.Name, s.last.Round(time.Millisecond))
		n.counts[s.name]++
		n.windows = append(n.windows, window{fault: s.name, from: time.Since(n.start), alone: len(list) == 1, placed: places[i]})
	}
	for i, s := range list {
		if n.led = nil; len(list) == 1 {
			n.led = places[i].led
		}
		back, err := s.begin(n, s.victim)
		if err != nil {
			return fmt.Errorf("%s %s: %w", s.name, s.victim.Name, err)
		}
		undo, wait = append(undo, back), max(wait, s.last)
	}
	pause(stop, wait)
	return nil
}

// places returns the shards of the victim of each fault.
func (n *nemesis) places(list []strike) []placed {
	all := make([]placed, len(list))
	ctx, cancel := context.WithTimeout(context.Background(), tryTimeout)
	defer cancel()
	status, err := n.cluster.status(ctx)
	if err != nil {
		return all // without a status the gaps are not measured
	}
	for i, s := range list {
		for _, m := range status.Nodes {
			for _, g := range m.Groups {
				if m.ID != s.victim.ID || g.Group == 0 {
					continue
				}
				all[i].held = append(all[i].held, int(g.Group))
				if g.Role == "leader" {
					all[i].led = append(all[i].led, int(g.Group))
				}
			}
		}
	}
	return all
}

// damaged reports whether a fault has damaged files.
func (n *nemesis) damaged() bool {
	for _, f := range append(slices.Clone(lossFaults), fault{name: flipName}) {
		if n.counts[f.name] > 0 {
			return true
		}
	}
	return false
}

// census looks for nodes that have ended by themselves. It starts a node again whose
// disk was full, and replaces a node whose files or disk were damaged. The end of any
// other node is an error.
func (n *nemesis) census() error {
	for _, p := range n.cluster.members() {
		if !p.Ended() {
			continue
		}
		if p.wasFull() {
			n.say("%s had no room left for meta and ended; it comes back", p.Name)
			if err := n.cluster.start(p); err != nil {
				return err
			}
			continue
		}
		if !p.damaged.Load() {
			return fmt.Errorf("%s has ended by itself: see %s", p.Name, p.Log)
		}
		n.say("%s has refused its damaged files, and is replaced", p.Name)
		if err := n.rebuild(p); err != nil {
			return err
		}
	}
	return nil
}

func pause(stop context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-stop.Done():
	}
}

var speech sync.Mutex

// say prints a line about the run.
func (n *nemesis) say(format string, args ...any) {
	speech.Lock()
	defer speech.Unlock()
	fmt.Fprintf(n.out, "%7.1fs  %s\n", time.Since(n.start).Seconds(), fmt.Sprintf(format, args...))
}
