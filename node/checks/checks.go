package checks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"facet/internal/id"
	"facet/node/loop"
	"facet/node/replicas"
	"facet/raftfsm"
)

const (
	// checkEntries is after how many entries they are compared before that.
	checkEntries = 1000
	// checkShare bounds the time that a replica spends on it: after a comparison that
	// took t there is none for checkShare times t.
	checkShare = 20
	// checkTick is the longest wait between two checks for a due comparison.
	checkTick = time.Second
	// checkWait is how long other replicas may take, at least; a slow one gets
	// checkSlow times as long as the leader took.
	checkWait = 20 * time.Second
	checkSlow = 4
	checkPoll = 100 * time.Millisecond
	// checkAsk bounds one question to another node.
	checkAsk = time.Second

	// methodSum asks for a replica's sum, methodDiverged tells of one that differs.
	methodSum      = "node.sum"
	methodDiverged = "node.diverged"
)

// checked is what is known of the comparisons of a group that this node leads.
type checked struct {
	at    time.Time // of the last
	index uint64
	took  time.Duration
	alarm string // a difference that could not be put right
	// differ are the members that were found to differ and not to agree since.
	differ []id.Member
}

// Replicas are the replicas of this node.
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

// Config is what comparisons need.
type Config struct {
	// Every is how often the replicas of a group at rest are compared.
	Every time.Duration
	Self  id.Member
	// Software names what hashes here: another release may write the same state otherwise.
	Software string
	Replicas Replicas
	Peers    Peers
	Log      *slog.Logger
}

// Checks compares the replicas of the groups that this node leads. Its methods are safe
// for concurrent use.
type Checks struct {
	*loop.Loop
	cfg Config

	mu       sync.Mutex // guards of, diverged and compared
	of       map[id.Shard]checked
	diverged int // replicas that this node found to differ
	compared int // comparisons in which all members took part
}

// New returns the comparisons of a node. Run makes them.
func New(c Config) *Checks {
	return &Checks{Loop: loop.New("checks"), cfg: c, of: map[id.Shard]checked{}}
}

// Methods are the requests of other nodes that the checks answer.
func (c *Checks) Methods() map[string]func(context.Context, []byte) ([]byte, error) {
	return map[string]func(context.Context, []byte) ([]byte, error){
		methodSum:      c.serveSum,
		methodDiverged: c.serveDiverged,
	}
}

// Counts returns how many comparisons all members took part in, and how many replicas
// were found to differ.
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

func (c *Checks) put(number id.Shard, k checked) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[number] = k
}

func (c *Checks) drop(number id.Shard) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.of, number)
}

// Alarms says in words which differences could not be put right.
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

// Run makes the comparisons that are due, at most one second after, until ctx ends.
func (c *Checks) Run(ctx context.Context) {
	c.Every(ctx, min(checkTick, c.cfg.Every), c.step)
}

// step makes the comparisons that are due.
func (c *Checks) step(ctx context.Context) (err error) {
	for _, number := range c.cfg.Replicas.All() {
		group, ok := c.cfg.Replicas.Group(number)
		if c.cfg.Replicas.Out(number) || !ok || !group.IsLeader() {
			c.drop(number) // the next leader has the alarm
			continue
		}
		if !c.due(number, group.Applied()) {
			continue
		}
		if failed := c.check(ctx, number, group); failed != nil && ctx.Err() == nil {
			c.cfg.Log.Info("replicas were not compared", "group", number, "why", failed)
			err = fmt.Errorf("compare the replicas of %s: %w", replicas.Name(number), failed)
		}
	}
	return err
}

// due reports whether a group's replicas are to be compared now. A new leader waits
// as long as one that has just compared.
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
		c.counted()
	}
	v := compare(servers, sums)
	last.alarm = v.alarm(number)
	for _, m := range v.diverged {
		if !slices.Contains(last.differ, m) { // else it was counted when it was found
			c.found()
		}
		c.cfg.Log.Error("a replica's state differs from the majority's", "group", number, "node", m)
		if err := c.cfg.Replicas.Enough(ctx, number, group.Status().Commit, replicas.VotersBut(servers, m)); err != nil {
			last.alarm = fmt.Sprintf("%s: the state on %s differs from the majority's, and it can't be spared: %v", replicas.Name(number), m, err)
			continue
		}
		if err := c.tellDiverged(ctx, m, divergence{number, name, v.right}); err != nil {
			last.alarm = fmt.Sprintf("%s: the state on %s differs from the majority's, and it does not give way: %v", replicas.Name(number), m, err)
		}
	}
	last.differ = stillDiffer(last.differ, v, sums)
	c.put(number, last)
	return nil
}

// stillDiffer returns the members that are known to differ: those of a comparison, and those
// of the one before that have said nothing since.
func stillDiffer(before []id.Member, v verdict, sums map[id.Member]sumAnswer) []id.Member {
	silent := slices.DeleteFunc(slices.Clone(before), func(m id.Member) bool {
		_, told := sums[m]
		return told
	})
	return append(silent, v.diverged...)
}

func (c *Checks) counted() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.compared++
}

func (c *Checks) found() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.diverged++
}

// sumQuery asks for a replica's sum at a checkpoint.
type sumQuery struct {
	Group id.Shard        `json:"group"`
	Check raftfsm.CheckID `json:"check"`
}

// sumAnswer is the answer.
type sumAnswer struct {
	// Open says that the replica runs, Known that it has the sum.
	Open   bool          `json:"open"`
	Known  bool          `json:"known"`
	Digest [32]byte      `json:"digest"`
	Took   time.Duration `json:"took"`
	// Software is what made it: another release may write the same state otherwise.
	Software string `json:"software"`
}

func (c *Checks) ownSum(q sumQuery) sumAnswer {
	group, open := c.cfg.Replicas.Group(q.Group)
	if c.cfg.Replicas.Out(q.Group) || !open {
		return sumAnswer{}
	}
	s, known := group.Sum(q.Check)
	return sumAnswer{Open: true, Known: known, Digest: s.Digest, Took: s.Took, Software: c.cfg.Software}
}

func (c *Checks) serveSum(_ context.Context, body []byte) ([]byte, error) {
	var q sumQuery
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, fmt.Errorf("read a question about a sum: %w", err)
	}
	return json.Marshal(c.ownSum(q))
}

// sums asks all members, until each has answered, or does not, or ctx ends.
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
		return c.ownSum(q), nil
	}
	var a sumAnswer
	ctx, cancel := context.WithTimeout(ctx, checkAsk)
	defer cancel()
	return a, c.cfg.Peers.Ask(ctx, m, methodSum, q, &a)
}

// divergence informs a node that its replica's sum is not the majority's.
type divergence struct {
	Group id.Shard        `json:"group"`
	Check raftfsm.CheckID `json:"check"`
	Right [32]byte        `json:"right"`
}

func (c *Checks) tellDiverged(ctx context.Context, m id.Member, d divergence) error {
	if m == c.cfg.Self {
		return c.giveWay(d)
	}
	ctx, cancel := context.WithTimeout(ctx, checkAsk)
	defer cancel()
	return c.cfg.Peers.Ask(ctx, m, methodDiverged, d, nil)
}

func (c *Checks) serveDiverged(_ context.Context, body []byte) ([]byte, error) {
	var d divergence
	if err := json.Unmarshal(body, &d); err != nil {
		return nil, fmt.Errorf("read of a divergence: %w", err)
	}
	return nil, c.giveWay(d)
}

// giveWay takes this node's replica out of service, if it has such a sum.
func (c *Checks) giveWay(d divergence) error {
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
