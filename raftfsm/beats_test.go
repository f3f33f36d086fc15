package raftfsm

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"facet/internal/id"
)

// processes are the nodes of several groups. Each sends the heartbeats of its groups together.
type processes struct {
	wires *wires
	old   atomic.Bool  // the nodes don't know the message
	sent  atomic.Int64 // messages
	way   atomic.Int64 // the nanoseconds of a message's way
	dial  atomic.Int64 // the nanoseconds that a message's connection takes
	cut   atomic.Int64 // messages that were given up before their connection was there

	mu      sync.Mutex // guards all below
	beats   map[id.Member]*Beats
	under   map[[2]id.Member]int // messages under way, by sender and receiver
	crowded bool                 // two were under way at a time
}

// begin counts a message as under way, until end is called.
func (p *processes) begin(from, to id.Member) (end func()) {
	count := func(n int) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.under[[2]id.Member{from, to}] += n
		p.crowded = p.crowded || p.under[[2]id.Member{from, to}] > 1
	}
	count(1)
	return func() { count(-1) }
}

// of returns the Beats of a member.
func (p *processes) of(m id.Member) *Beats {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.beats[m] == nil {
		p.beats[m] = NewBeats(func(ctx context.Context, to id.Member, q, a any) (err error) {
			p.sent.Add(1)
			defer p.begin(m, to)()
			from, _ := m.Node()
			if time.Sleep(time.Duration(p.dial.Load())); ctx.Err() != nil {
				p.cut.Add(1)
				return ctx.Err()
			}
			time.Sleep(time.Duration(p.way.Load()))
			defer func() { time.Sleep(time.Duration(p.way.Load())) }()
			if p.old.Load() || !p.wires.reach(m, to) {
				return errors.New("unknown method")
			}
			*a.(*BeatsAnswer), err = p.of(to).Serve(from, q.(BeatsQuestion))
			return err
		}, Timing{})
	}
	return p.beats[m]
}

// together runs a test with three groups that one process leads.
func together(t *testing.T, do func(t *testing.T, p *processes, groups []*cluster, members []id.Member)) {
	bubble(t, func(t *testing.T) {
		p, members := &processes{wires: newWires(), beats: map[id.Member]*Beats{}, under: map[[2]id.Member]int{}}, nodeNames(3)
		t.Cleanup(func() {
			for _, b := range p.beats {
				b.Close()
			}
		})
		groups := ledGroups(t, 3, members, func(cfg *Config) { cfg.Beats = p.of(cfg.Self) })
		time.Sleep(20 * time.Second) // until the members have answered the first message
		do(t, p, groups, members)
	})
}

// ledGroups founds groups with the same members. The first one leads them.
func ledGroups(t *testing.T, n int, members []id.Member, tune func(*Config)) []*cluster {
	var groups []*cluster
	for number := range n {
		c := newCluster(t, newWires(), func(cfg *Config) {
			cfg.Group = id.Shard(7 + number)
			tune(cfg)
		})
		c.found(members...)
		c.lead(members[0])
		c.propose("x")
		c.agree()
		groups = append(groups, c)
	}
	return groups
}

// staysLed fails the test unless members of a group hear from its leader all the time. A heartbeat comes at most raft's
// pause (250 ms), a tick (500 ms) and a message on a stream after the one before.
func staysLed(t *testing.T, c *cluster, leader id.Member, d time.Duration) {
	t.Helper()
	term := c.members[leader].raft.CurrentTerm()
	for began := time.Now(); time.Since(began) < d; time.Sleep(20 * time.Millisecond) {
		for _, name := range c.others(c.members[leader]) {
			if ago := time.Since(c.members[name].raft.LastContact()); ago > heartbeatDefault*3/5 {
				t.Fatalf("group %d: %s has not heard from its leader for %s", c.members[name].cfg.Group, name, ago)
			}
		}
	}
	if now := c.members[leader].raft.CurrentTerm(); now != term {
		t.Errorf("group %d has gone from term %d to %d", c.members[leader].cfg.Group, term, now)
	}
}

func streamed(groups []*cluster) (sum int64) {
	for _, c := range groups {
		sum += c.wires.sent.Load()
	}
	return sum
}

func TestGroupsShareHeartbeats(t *testing.T) {
	together(t, func(t *testing.T, p *processes, groups []*cluster, members []id.Member) {
		messages, streams := p.sent.Load(), streamed(groups)
		staysLed(t, groups[0], members[0], time.Minute)
		messages, streams = p.sent.Load()-messages, streamed(groups)-streams
		const most, mostStreams = 2 * 60 * 2, 3 * 2 * 60 / 5 // one for each tick of half a second; appends alone
		if messages > most || streams > mostStreams {
			t.Errorf("in a minute the leaders sent %d messages together and %d on streams, want at most %d and %d", messages, streams, most, mostStreams)
		}
	})
}

// Round trips take longer than the pause of raft that a tick leaves.
func TestFarFollowersHearAtEachTick(t *testing.T) {
	together(t, func(t *testing.T, p *processes, groups []*cluster, members []id.Member) {
		p.way.Store(int64(180 * time.Millisecond))
		time.Sleep(time.Second)
		streams := streamed(groups)
		for _, c := range groups {
			staysLed(t, c, members[0], 20*time.Second)
		}
		if sent, most := streamed(groups)-streams, int64(3*3*2*20/5); sent > most {
			t.Errorf("%d messages went over streams in a minute, want at most %d", sent, most)
		}
	})
}

// The answer comes when the next message is due. A second connection would take longer than
// heartbeats wait.
func TestFarFollowersNeedOneConnection(t *testing.T) {
	together(t, func(t *testing.T, p *processes, groups []*cluster, members []id.Member) {
		for _, way := range []time.Duration{250 * time.Millisecond, 290 * time.Millisecond} {
			p.way.Store(int64(way))
			time.Sleep(time.Second)
			for _, c := range groups {
				staysLed(t, c, members[0], 20*time.Second)
			}
		}
		if p.crowded {
			t.Error("a message was sent before the one before it was answered")
		}
	})
}

// A message over a new connection to a far node takes three round trips of half a second. Its
// heartbeats don't wait that long, and the next message finds the connection.
func TestHeartbeatsWaitForNoConnection(t *testing.T) {
	together(t, func(t *testing.T, p *processes, groups []*cluster, members []id.Member) {
		p.dial.Store(int64(1500 * time.Millisecond))
		for _, c := range groups {
			leader, term := c.members[members[0]], c.members[members[0]].raft.CurrentTerm()
			for range 60 {
				time.Sleep(time.Second)
				for _, name := range c.others(leader) {
					if ago := time.Since(c.members[name].raft.LastContact()); ago > 1100*time.Millisecond {
						t.Errorf("%s has not heard from its leader for %s", name, ago)
						return
					}
				}
			}
			if now := leader.raft.CurrentTerm(); now != term {
				t.Errorf("the group has gone from term %d to %d", term, now)
			}
		}
		if cut := p.cut.Load(); cut > 0 {
			t.Errorf("%d of %d messages were given up before they had a connection", cut, p.sent.Load())
		}
	})
}

// Beside a follower that answers the message, one that does not gets heartbeats on streams.
func TestSilentNodesGetHeartbeats(t *testing.T) {
	together(t, func(t *testing.T, p *processes, groups []*cluster, members []id.Member) {
		p.old.Store(true)
		for _, c := range groups {
			staysLed(t, c, members[0], 40*time.Second)
		}
		p.old.Store(false)
		staysLed(t, groups[0], members[0], 40*time.Second)
		before := streamed(groups)
		time.Sleep(time.Minute)
		if sent, most := streamed(groups)-before, int64(3*2*60); sent > most {
			t.Errorf("after it answers %d messages went over streams in a minute, want at most %d", sent, most)
		}
	})
}

// A follower whose main goroutine is stuck in an earlier term can't answer its new leader. The
// other groups of the two nodes don't wait for it.
func TestStuckGroupDelaysNoHeartbeat(t *testing.T) {
	together(t, func(t *testing.T, p *processes, groups []*cluster, members []id.Member) {
		stuck := groups[0].members[members[2]]
		release, reached := stuck.disk.hang()
		groups[0].propose("x", members[:2]...)
		<-reached
		for _, c := range groups {
			c.lead(members[1])
		}
		time.Sleep(time.Second)
		if groups[0].leader().raft.CurrentTerm() == stuck.raft.CurrentTerm() {
			t.Fatal("the follower has the new leader's term, so this shows nothing")
		}
		staysLed(t, groups[1], members[1], 10*time.Second)
		staysLed(t, groups[2], members[1], 10*time.Second)
		release()
		groups[0].agree()
	})
}

// The leader's other groups go on.
func TestClosedGroupSeesNoHeartbeat(t *testing.T) {
	together(t, func(t *testing.T, p *processes, groups []*cluster, members []id.Member) {
		leader := groups[0].members[members[0]]
		groups[0].stop(members[1])
		groups[0].stop(members[2])
		time.Sleep(2 * heartbeatDefault)
		if leader.IsLeader() {
			t.Error("a leader leads on, and its followers are closed")
		}
		for _, c := range groups[1:] {
			staysLed(t, c, members[0], 5*time.Second)
		}
		groups[0].open(members[1])
		groups[0].open(members[2])
		groups[0].agree()
	})
}

func TestForeignHeartbeatsAreRefused(t *testing.T) {
	t.Parallel()
	members := nodeNames(2)
	from, _ := members[0].Node()
	b := NewBeats(nil, Timing{})
	defer b.Close()
	f := func(q BeatsQuestion, refused bool) {
		t.Helper()
		if a, err := b.Serve(from, q); (err != nil) != refused {
			t.Errorf("%d heartbeats of %s: %+v, %v", len(q.Beats), q.Member, a, err)
		}
	}
	f(BeatsQuestion{Member: members[0]}, false)
	f(BeatsQuestion{Member: members[1]}, true)
	f(BeatsQuestion{Member: "nobody"}, true)
}
