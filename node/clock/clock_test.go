package clock_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"facet/internal/id"
	"facet/node/clock"
)

const year = 365 * 24 * time.Hour

// world is a cluster as one node's clock sees it. off is how far the node's own clock is from
// the true time.
type world struct {
	*clock.Clock
	off time.Duration
}

func node(n byte) id.Node { return id.Node{UUID: id.UUID{n}} }

// newWorld returns a world of n nodes. The own node is node 1.
func newWorld(n byte) *world {
	w := &world{}
	w.Clock = clock.New(clock.Config{
		Node: node(1), Wall: func() time.Time { return time.Now().Add(w.off) },
		Nodes: func() (list []id.Node) {
			for i := range n {
				list = append(list, node(i+1))
			}
			return list
		},
	})
	return w
}

// hear lets the n-th node answer, whose clock is off.
func (w *world) hear(n byte, off time.Duration) {
	asked := time.Now()
	time.Sleep(20 * time.Millisecond)
	wall := time.Now().Add(off)
	time.Sleep(20 * time.Millisecond)
	w.Heard(node(n), wall, asked, time.Now())
}

func (w *world) check(t *testing.T, name string, agrees bool, corrected time.Duration) {
	t.Helper()
	now, got := w.Trusted()
	if got != agrees || time.Until(now) != w.off {
		t.Errorf("%s: agrees %v, %v off, want %v, %v", name, got, time.Until(now), agrees, w.off)
	}
	if off := time.Until(w.Now()); off != corrected {
		t.Errorf("%s: corrected to %v off, want %v", name, off, corrected)
	}
}

func TestClockAgreesWithMajorityOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(3)
		w.check(t, "nobody heard", false, 0)
		w.hear(2, 0)
		w.check(t, "two of three", true, 0)
		w.off = year
		w.check(t, "a jump, with one other clock", false, year)
		w.hear(3, time.Second)
		w.check(t, "a jump, with two other clocks", false, time.Second)
		w.off = -year
		w.check(t, "a jump back", false, 0)
		w.off = 5 * time.Second
		w.check(t, "just within", true, 5*time.Second)
		w.off = 7 * time.Second
		w.check(t, "just beyond", false, time.Second)
		w.off = 0
		w.hear(3, year)
		w.check(t, "one other clock is wrong", true, 0)
		w.hear(2, -year)
		w.check(t, "all three differ", false, 0)
		w.hear(2, 0)
		time.Sleep(11 * time.Second)
		w.check(t, "heard long ago", false, 0)
	})
}

func TestLoneNodeAgreesWithItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for n := range byte(2) { // a cluster that is not founded has no nodes
			w := newWorld(n)
			w.check(t, "alone", true, 0)
		}
		w := newWorld(2)
		w.check(t, "one of two", false, 0)
	})
}

func TestAlarmNamesLastingSkew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(3)
		f := func(name, want string) {
			t.Helper()
			got := strings.Join(w.Alarms(), "\n")
			if want == "" && got != "" || !strings.Contains(got, want) {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		f("at the start", "")
		time.Sleep(11 * time.Second)
		f("nobody heard", "3 nodes, 1 of which are heard")
		w.hear(2, 0)
		w.hear(3, 0)
		f("in agreement", "")
		w.off = year
		f("at once after a jump", "")
		time.Sleep(9 * time.Second)
		w.hear(2, 0)
		w.hear(3, 0)
		time.Sleep(2 * time.Second)
		f("a year ahead", "8760h0m0s ahead")
	})
}
