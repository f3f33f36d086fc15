package clock

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"facet/internal/id"
)

const (
	// SkewMax is how far a clock may be from another one that it agrees with.
	SkewMax = 5 * time.Second
	// heardFor is how long the reading of a node's clock counts.
	heardFor = 10 * time.Second
	// calm is how long a clock may disagree before operators hear of it. A node that starts has
	// heard from nobody.
	calm = 10 * time.Second
)

// Config configures a Clock.
type Config struct {
	Node id.Node // this node
	// Nodes returns the nodes of the cluster. Removed ones are not among them.
	Nodes func() []id.Node
	// Wall returns this node's time. It is time.Now, except in tests.
	Wall func() time.Time
}

// Clock compares clocks. It is safe for concurrent use.
type Clock struct {
	cfg Config

	mu     sync.Mutex // guards heard and agreed
	heard  map[id.Node]reading
	agreed time.Time // when the clock last agreed; at first when it was made
}

// reading is a node's time, as it was at a moment of this node's monotonic clock.
type reading struct {
	wall time.Time
	at   time.Time
}

// now returns the node's time by now.
func (r reading) now() time.Time { return r.wall.Add(time.Since(r.at)) }

// New returns a Clock that has heard from nobody.
func New(c Config) *Clock {
	if c.Wall == nil {
		c.Wall = time.Now
	}
	return &Clock{cfg: c, heard: map[id.Node]reading{}, agreed: time.Now()}
}

// Wall returns this node's time without a comparison.
func (c *Clock) Wall() time.Time { return c.cfg.Wall() }

// Heard records the time of a node that answered between two moments.
func (c *Clock) Heard(node id.Node, wall, asked, answered time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard[node] = reading{wall.Round(0), asked.Add(answered.Sub(asked) / 2)}
}

// Comparison is the outcome of a comparison of clocks.
type Comparison struct {
	// Time is this node's time.
	Time time.Time
	// Agrees reports whether it is within SkewMax of a majority of all clocks.
	Agrees bool
	// Nodes counts all nodes, Heard those with a known time, this one included.
	Nodes, Heard int
	// Most is the time that a majority of the nodes agree on. It is zero if there is none.
	Most time.Time
}

// Compare compares this node's clock with those of the others.
func (c *Clock) Compare() Comparison {
	nodes := c.cfg.Nodes()
	c.mu.Lock()
	defer c.mu.Unlock()
	own := c.cfg.Wall().Round(0)
	times := []time.Time{own}
	for _, n := range nodes {
		if r, ok := c.heard[n]; ok && n != c.cfg.Node && time.Since(r.at) <= heardFor {
			times = append(times, r.now())
		}
	}
	out := Comparison{Time: own, Nodes: max(1, len(nodes)), Heard: len(times)}
	near := func(t time.Time) (n int) {
		for _, other := range times {
			if t.Sub(other).Abs() <= SkewMax {
				n++
			}
		}
		return n
	}
	if out.Agrees = 2*near(own) > out.Nodes; out.Agrees {
		c.agreed, out.Most = time.Now(), own
		return out
	}
	slices.SortFunc(times, time.Time.Compare)
	if middle := times[(len(times)-1)/2]; 2*near(middle) > out.Nodes {
		out.Most = middle
	}
	return out
}

// Now returns the time for new writes: this node's, or that of most nodes if they contradict it.
func (c *Clock) Now() time.Time {
	if k := c.Compare(); !k.Most.IsZero() {
		return k.Most
	}
	return c.cfg.Wall()
}

// Trusted returns this node's time, and whether its clock agrees.
func (c *Clock) Trusted() (now time.Time, agrees bool) {
	k := c.Compare()
	return k.Time, k.Agrees
}

// Alarms describes, for operators, a clock that has not agreed for a while.
func (c *Clock) Alarms() []string {
	k := c.Compare()
	c.mu.Lock()
	since := time.Since(c.agreed)
	c.mu.Unlock()
	switch {
	case k.Agrees || since < calm:
		return nil
	case !k.Most.IsZero():
		off, way := k.Time.Sub(k.Most), "ahead"
		if off < 0 {
			off, way = -off, "behind"
		}
		return []string{fmt.Sprintf("the clock is %s %s: no event expires on the shards that this node leads; repair its time service", off.Round(time.Second), way)}
	default:
		return []string{fmt.Sprintf("the clock agrees with no majority of the %d nodes, %d of which are heard: no event expires on the shards that this node leads", k.Nodes, k.Heard)}
	}
}
