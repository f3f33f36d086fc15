package checks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"facet/internal/id"
	"facet/node/loop"
	"facet/node/peer"
	"facet/node/replicas"
	"facet/raftfsm"
)

const (
	// checkEntries is how many new entries make a comparison due before Config.Every.
	checkEntries = 1000
	// checkShare limits the time that a replica spends on comparisons. After one that took
	// t there is none for checkShare times t.
	checkShare = 20
	// checkTick is the longest wait between two checks for a due comparison.
	checkTick = time.Second
	// A replica may take checkWait, plus checkSlow times as long as the leader took the last
	// time, until its sum is there. The leader asks for it every checkPoll.
	checkWait = 20 * time.Second
	checkSlow = 4
	checkPoll = 100 * time.Millisecond

	// methodSum asks for a replica's sum. methodDiverged informs a node that its replica's
	// sum differs from the majority's.
	methodSum      = "node.sum"
	methodDiverged = "node.diverged"
)

// checked describes the last comparison of a group that this node leads.
type checked struct {
	at    time.Time
	index uint64
	took  time.Duration
	alarm string // a difference that could not be repaired
	// differ lists the members that differed and have not agreed since.
	differ []id.Member
}

// Replicas is the access to the replicas of this node.
type Replicas interface {
	All() []id.Shard
	Group(number id.Shard) (*raftfsm.Group, bool)
	Out(number id.Shard) bool
	Damage(number id.Shard, err error)
	Enough(ctx context.Context, number id.Shard, commit uint64, voters []id.Member) error
}

// Peers asks other nodes.
type Peers interface {
	Ask(ctx context.Context, to id.Member, method string, q, a any) error
}

// Config configures the comparisons of a node.
type Config struct {
	// Every is how often the replicas of a group at rest are compared.
	Every time.Duration
	Self  id.Member
	// Software names this node's release. Another release may encode the same state
	// differently.
	Software string
	Replicas Replicas
	Peers    Peers
	Log      *slog.Logger
}

// Checks compares the replicas of the groups that this node leads. It is safe for
// concurrent use.
type Checks struct {
	*loop.Loop
	cfg Config

	mu       sync.Mutex // guards of, diverged and compared
	of       map[id.Shard]checked
	diverged int // see Counts
	compared int
}

// New returns a Checks; Run makes the comparisons.
func New(c Config) *Checks {
	return &Checks{Loop: loop.New("checks"), cfg: c, of: map[id.Shard]checked{}}
}

// Methods returns the handlers of the requests that the checks answer to other nodes.
func (c *Checks) Methods() map[string]peer.Handler {
	return map[string]peer.Handler{
		methodSum:      peer.Answers(c.ownSum),
		methodDiverged: peer.Obeys(c.giveWay),
	}
}

// Counts returns the number of comparisons with all members, and the number of replicas
// that differed.
func (c *Checks) Counts() (compared, diverged int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.compared, c.diverged
}

func (c *Checks) get(number id.Shard) (checked, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, ok := c.of[number]
	return k, ok
}

// change runs f under mu.
func (c *Checks) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

func (c *Checks) put(number id.Shard, k checked) { c.change(func() { c.of[number] = k }) }

// Alarms describes, for operators, the differences that could not be repaired.
func (c *Checks) Alarms() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []string
	for _, number := range slices.Sorted(maps.Keys(c.of)) {
		if k := c.of[number]; k.alarm != "" {
			list = append(list, k.alarm)
		}
	}
	return list
}

// Run makes each comparison at most one second after it is due, until ctx ends.
func (c *Checks) Run(ctx context.Context) {
	c.Every(ctx, min(checkTick, c.cfg.Every), c.step)
}

// step makes the comparisons that are due.
func (c *Checks) step(ctx context.Context) (err error) {
	for _, number := range c.cfg.Replicas.All() {
		group, ok := c.cfg.Replicas.Group(number)
		if c.cfg.Replicas.Out(number) || !ok || !group.IsLeader() {
			c.change(func() { delete(c.of, number) }) // the next leader has the alarm
			continue
		}
		if !c.due(number, group.Applied()) {
			continue
		}
		if failed := c.check(ctx, number, group); failed != nil && ctx.Err() == nil {
			c.cfg.Log.InfoContext(ctx, "replicas were not compared", "group", number, "why", failed)
			err = fmt.Errorf("compare the replicas of %s: %w", replicas.Name(number), failed)
		}
	}
	return err
}

// due reports whether a comparison of the group is due. A new leader waits as if it had just
// made one.
func (c *Checks) due(number id.Shard, applied uint64) bool {
	k, known := c.get(number)
	if !known {
		c.put(number, checked{at: time.Now(), index: applied})
		return false
	}
	since := time.Since(k.at)
	return since >= checkShare*k.took && (since >= c.cfg.Every || applied >= k.index+checkEntries)
}

// check compares the replicas of a group that this node leads.
func (c *Checks) check(ctx context.Context, number id.Shard, group *raftfsm.Group) error {
	last, _ := c.get(number)
	last.at, last.index = time.Now(), group.Applied()
	c.put(number, last)
	servers, _, err := group.Servers()
	if err != nil {
		return err
	}
	asking, cancel := context.WithTimeout(ctx, checkWait+checkSlow*last.took)
	defer cancel()
	name, err := group.Checkpoint(asking)
	if err != nil {
		return err
	}
	sums := c.sums(asking, sumQuery{number, name}, servers)
	if own, ok := sums[c.cfg.Self]; ok {
		last.took = own.Took
	}
	if len(sums) == len(servers) {
		c.change(func() { c.compared++ })
	}
	v := compare(servers, sums)
	last.alarm = v.alarm(number)
	for _, m := range v.diverged {
		if !slices.Contains(last.differ, m) { // each divergence counts once
			c.change(func() { c.diverged++ })
		}
		c.cfg.Log.ErrorContext(ctx, "a replica's state differs from the majority's", "group", number, "node", m)
		if err := c.cfg.Replicas.Enough(ctx, number, group.Status().Commit, replicas.VotersBut(servers, m)); err != nil {
			last.alarm = fmt.Sprintf("%s: the state on %s differs from the majority's, and its vote is needed: %v", replicas.Name(number), m, err)
			continue
		}
		if err := c.tellDiverged(ctx, m, divergence{number, name, v.right}); err != nil {
			last.alarm = fmt.Sprintf("%s: the state on %s differs from the majority's, and the node keeps it: %v", replicas.Name(number), m, err)
		}
	}
	last.differ = stillDiffer(last.differ, v, sums)
	c.put(number, last)
	return nil
}

// stillDiffer returns the members that differ by the comparison v, and those of the
// comparison before it that did not answer this time.
func stillDiffer(before []id.Member, v verdict, sums map[id.Member]sumAnswer) []id.Member {
	silent := slices.DeleteFunc(slices.Clone(before), func(m id.Member) bool {
		_, told := sums[m]
		return told
	})
	return append(silent, v.diverged...)
}

// sumQuery is the request of methodSum: a replica's sum at a checkpoint.
type sumQuery struct {
	Group id.Shard        `json:"group"`
	Check raftfsm.CheckID `json:"check"`
}

// sumAnswer is the answer to a sumQuery.
type sumAnswer struct {
	// Open reports whether the replica runs, Known whether it has the sum.
	Open     bool          `json:"open"`
	Known    bool          `json:"known"`
	Digest   [32]byte      `json:"digest"`
	Took     time.Duration `json:"took"`
	Software string        `json:"software"` // Config.Software
}

// ownSum returns the sum of this node's replica.
func (c *Checks) ownSum(_ context.Context, q sumQuery) (sumAnswer, error) {
	group, open := c.cfg.Replicas.Group(q.Group)
	if c.cfg.Replicas.Out(q.Group) || !open {
		return sumAnswer{}, nil
	}
	s, known := group.Sum(q.Check)
	return sumAnswer{Open: true, Known: known, Digest: s.Digest, Took: s.Took, Software: c.cfg.Software}, nil
}

// sums collects the sums of all members. It asks again until each has answered or failed,
// or ctx ends.
func (c *Checks) sums(ctx context.Context, q sumQuery, servers []raftfsm.Server) map[id.Member]sumAnswer {
	got := map[id.Member]sumAnswer{}
	wait := map[id.Member]bool{}
	for _, s := range servers {
		wait[s.Member] = true
	}
	for len(wait) > 0 {
		for m := range wait {
			a, err := c.askSum(ctx, m, q)
			if err != nil || !a.Open {
				delete(wait, m)
			} else if a.Known {
				got[m] = a
				delete(wait, m)
			}
		}
		select {
		case <-time.After(checkPoll):
		case <-ctx.Done():
			return got
		}
	}
	return got
}

func (c *Checks) askSum(ctx context.Context, m id.Member, q sumQuery) (sumAnswer, error) {
	if m == c.cfg.Self {
		return c.ownSum(ctx, q)
	}
	var a sumAnswer
	ctx, cancel := context.WithTimeout(ctx, peer.AnswerTimeout)
	defer cancel()
	return a, c.cfg.Peers.Ask(ctx, m, methodSum, q, &a)
}

// divergence is the request of methodDiverged. Right is the majority's sum.
type divergence struct {
	Group id.Shard        `json:"group"`
	Check raftfsm.CheckID `json:"check"`
	Right [32]byte        `json:"right"`
}

func (c *Checks) tellDiverged(ctx context.Context, m id.Member, d divergence) error {
	if m == c.cfg.Self {
		return c.giveWay(ctx, d)
	}
	ctx, cancel := context.WithTimeout(ctx, peer.AnswerTimeout)
	defer cancel()
	return c.cfg.Peers.Ask(ctx, m, methodDiverged, d, nil)
}

// giveWay takes this node's replica out of service if its sum differs from d.Right.
func (c *Checks) giveWay(_ context.Context, d divergence) error {
	group, open := c.cfg.Replicas.Group(d.Group)
	if !open {
		return fmt.Errorf("group %d is not open", d.Group)
	}
	s, known := group.Sum(d.Check)
	if !known || s.Digest == d.Right {
		return errors.New("the replica here has no other sum")
	}
	c.cfg.Replicas.Damage(d.Group, fmt.Errorf("%w at index %d", replicas.ErrDiverged, s.Index))
	return nil
}
