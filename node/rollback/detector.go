package rollback

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"facet/internal/id"
	"facet/internal/tick"
	"facet/node/loop"
	"facet/node/membership"
	"facet/node/peer"
	"facet/raftfsm"
	"facet/raftfsm/metafsm"
)

const (
	// interval is how often the nodes exchange what they know, and how often it is written.
	interval = time.Second
	// due is when an exchange or a write is due again: the loop's tick may come early.
	due = interval * 9 / 10
	// askTimeout is how long one exchange may take.
	askTimeout = 3 * time.Second
	// A group that is not admitted yet is looked at every gatePoll. Until all groups are
	// admitted, a node that did not answer is asked again after retryMin, then after twice
	// as long, up to retryMax.
	gatePoll = 20 * time.Millisecond
	retryMin = 50 * time.Millisecond
	retryMax = 400 * time.Millisecond
	// grace is how long groups wait for further answers after the first one.
	grace = 500 * time.Millisecond
	// triesMin is how often a node must fail to answer to count as out of reach: at first
	// its address may not be known yet.
	triesMin = 3
	// alarmFor is how long the status names a replica that had lost state. A node that
	// stopped is named until it is removed, or runs again for alarmRest.
	alarmFor  = time.Hour
	alarmRest = 10 * time.Second

	// methodExchange sends what a node knows, and asks what the other node knows of it.
	methodExchange = "node.marks"
	// methodLost tells a node that a replica of it has lost state.
	methodLost = "node.lost"
)

// MethodExchange may be called by a node without a record.
const MethodExchange = methodExchange

// Replicas is the access to the replicas of this node.
type Replicas interface {
	All() []id.Shard
	Group(number id.Shard) (*raftfsm.Group, bool)
	Out(number id.Shard) bool
	Damage(number id.Shard, err error)
	Meta() *metafsm.Machine
}

// Peers asks other nodes.
type Peers interface {
	Ask(ctx context.Context, to id.Member, method string, q, a any) error
}

// Config configures a Detector.
type Config struct {
	Table    *Table
	Self     id.Member
	Replicas Replicas
	Peers    Peers
	// Members returns the nodes that gossip shows.
	Members func() []membership.Member
	// Holds reports whether this process still acts for its member. If another one has
	// replaced it, the node ends for that reason.
	Holds func(context.Context) bool
	// Fatal ends the node because of an error.
	Fatal func(error)
	Log   *slog.Logger
}

// Detector notices lost state of this node and of others. It is safe for concurrent use.
type Detector struct {
	*loop.Loop
	cfg  Config
	work sync.WaitGroup // exchanges; Run waits for them

	mu      sync.Mutex // guards peers to events
	peers   map[id.Member]*other
	mine    map[id.Shard]claim
	first   time.Time // of the first answer; zero: none yet
	failed  bool      // the node has lost state and is about to stop
	stopped map[id.Member]report
	events  []event
	saved   time.Time // when the table was last written
}

// other holds the state of the exchanges with one node.
type other struct {
	busy     bool
	answered bool
	fails    int
	began    time.Time // of the last exchange
	version  uint64    // of the table that the node has received
}

// claim is the newest mark that a peer knows of a replica here.
type claim struct {
	raftfsm.Mark
	by id.Member
}

// report is why another node stopped.
type report struct {
	at     time.Time
	reason string
}

// event is a replica here that had lost state.
type event struct {
	group  id.Shard
	at     time.Time
	reason string
}

// New returns a Detector; Run does its work.
func New(c Config) *Detector {
	return &Detector{
		Loop: loop.New("rollbacks"), cfg: c, peers: map[id.Member]*other{}, mine: map[id.Shard]claim{}, stopped: map[id.Member]report{}, saved: time.Now(),
	}
}

// Methods returns the handlers of the requests that a Detector answers to other nodes.
func (d *Detector) Methods() map[string]peer.Handler {
	return map[string]peer.Handler{
		methodExchange: peer.Answers(d.exchange),
		methodLost:     peer.Answers(d.giveWay),
	}
}

// Run exchanges what the nodes know, and admits groups to elections, until ctx ends.
func (d *Detector) Run(ctx context.Context) {
	defer d.Start()()
	defer d.work.Wait()
	for ctx.Err() == nil {
		waiting, err := d.step(ctx)
		d.Done(err)
		pause := tick.Until(interval)
		if waiting {
			pause = gatePoll
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-d.cfg.Table.wake:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// step does what is due. waiting reports whether a group here is not admitted yet.
func (d *Detector) step(ctx context.Context) (waiting bool, err error) {
	d.observe()
	d.askAll(ctx)
	for _, number := range d.cfg.Replicas.All() {
		if d.check(ctx, number) {
			waiting = true
		}
	}
	if time.Since(d.saved) >= due {
		d.saved = time.Now()
		d.cfg.Table.Drop(d.removed)
		err = d.cfg.Table.Save()
	}
	return waiting, err
}

// observe records the lives of the replicas here, their terms, and the logs that they lead.
func (d *Detector) observe() {
	for _, number := range d.cfg.Replicas.All() {
		group, open := d.cfg.Replicas.Group(number)
		if !open || d.cfg.Replicas.Out(number) || !group.Gate().Admitted() {
			continue
		}
		s, sound := group.Standing()
		if !sound {
			continue
		}
		k := raftfsm.Mark{Life: d.cfg.Table.Life(number), Term: s.Term}
		if s.Leads {
			k.Index = s.Last
		}
		d.cfg.Table.Marks(number).Add(d.cfg.Self, k)
	}
}

// check takes a replica that has less than what a peer knows of it out of service, and lets
// any other take part in elections once enough peers were asked. It reports whether the
// replica waits for that.
func (d *Detector) check(ctx context.Context, number id.Shard) (waits bool) {
	group, open := d.cfg.Replicas.Group(number)
	if !open || d.cfg.Replicas.Out(number) {
		return false
	}
	d.mu.Lock()
	settled, enough := d.settled(), d.enough(group.Electors())
	known := d.mine[number] // all that those have said
	d.mu.Unlock()
	s, sound := group.Standing()
	if !sound {
		return false
	}
	own := raftfsm.Mark{Life: d.cfg.Table.Life(number), Term: s.Term, Index: s.Last}
	if own.Before(known.Mark) {
		d.lost(ctx, number, fmt.Sprintf("%s knows of it %s, and here it has %s", known.by, words(known.Mark), words(own)))
		return false
	}
	if settled {
		group.Gate().Receive()
	}
	if enough {
		group.Gate().Admit()
	}
	return !group.Gate().Admitted()
}

func words(m raftfsm.Mark) string {
	return fmt.Sprintf("life %d, term %d, index %d", m.Life, m.Term, m.Index)
}

// enough reports whether every node that can be reached and, with this one, a majority of
// voters was asked. The only voter waits for nobody that is out of reach. The caller holds
// mu.
func (d *Detector) enough(voters []id.Member) bool {
	asked, alone := 0, true
	for _, m := range voters {
		if p := d.peers[m]; m == d.cfg.Self || p != nil && p.answered {
			asked++
		}
		alone = alone && m == d.cfg.Self
	}
	return asked > len(voters)/2 && (d.settled() || alone && d.tried())
}

// settled reports whether every node that can be reached has been asked. The caller holds
// mu.
func (d *Detector) settled() bool {
	if d.first.IsZero() {
		return false
	}
	return time.Since(d.first) >= grace || d.tried()
}

// tried reports whether every node has answered or counts as out of reach. The caller
// holds mu.
func (d *Detector) tried() bool {
	for _, p := range d.peers {
		if !p.answered && p.fails < triesMin {
			return false
		}
	}
	return true
}

// all reports whether all groups here are admitted.
func (d *Detector) all() bool {
	for _, number := range d.cfg.Replicas.All() {
		if group, open := d.cfg.Replicas.Group(number); open && !group.Gate().Admitted() {
			return false
		}
	}
	return true
}

// removed reports whether meta records a member as removed.
func (d *Detector) removed(m id.Member) bool {
	node, err := m.Node()
	if err != nil {
		return true
	}
	r, known := d.cfg.Replicas.Meta().Node(node)
	return known && r.State == metafsm.NodeRemoved && r.Member == m
}

// others returns the members that are asked: those that gossip shows, those with a record,
// and the voters of the groups here.
func (d *Detector) others() []id.Member {
	set := map[id.Member]bool{}
	for _, m := range d.cfg.Members() {
		set[m.Member] = true
	}
	for _, r := range d.cfg.Replicas.Meta().Nodes() {
		set[r.Member] = true
	}
	for _, number := range d.cfg.Replicas.All() {
		if group, open := d.cfg.Replicas.Group(number); open {
			for _, m := range group.Electors() {
				set[m] = true
			}
		}
	}
	var list []id.Member
	for m := range set {
		if m != d.cfg.Self && !d.removed(m) {
			list = append(list, m)
		}
	}
	slices.Sort(list)
	return list
}

// askAll starts the exchanges that are due.
func (d *Detector) askAll(ctx context.Context) {
	lost := d.cfg.Table.Lost()
	now := time.Now()
	others := d.others()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range others {
		p := d.peers[m]
		if p == nil {
			p = &other{}
			d.peers[m] = p
		}
		orders := slices.DeleteFunc(slices.Clone(lost), func(r Row) bool { return r.Member != m })
		pause := due
		if !p.answered && !d.all() {
			pause = min(retryMin<<min(p.fails, 8), retryMax)
		} else if len(orders) > 0 {
			pause = retryMax
		}
		if p.busy || d.failed || now.Sub(p.began) < pause {
			continue
		}
		p.busy, p.began = true, now
		d.work.Go(func() { // ends with its calls
			for _, r := range orders {
				d.tell(ctx, r)
			}
			d.ask(ctx, m, p)
			d.cfg.Table.Wake()
		})
	}
}
