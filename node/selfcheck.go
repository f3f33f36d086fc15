package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"facet/internal/id"
	"facet/node/metrics"
	"facet/node/replicas"
	"facet/raftfsm"
)

const (
	// CheckDefault is how often the replicas of a group at rest are compared.
	CheckDefault = 10 * time.Minute
	// checkEntries is after how many entries they are compared before that.
	checkEntries = 1000
	// checkShare bounds the time that a replica spends on it: after a comparison that
	// took t there is none for checkShare times t.
	checkShare = 20
	// checkTurn is how often is looked whether one is due, at most.
	checkTurn = time.Second
	// checkWait is how long other replicas may take, at least; a slow one gets
	// checkSlow times as long as the leader took.
	checkWait = 20 * time.Second
	checkSlow = 4
	checkPoll = 100 * time.Millisecond
	// checkAsk bounds one question to another node.
	checkAsk = time.Second
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

// selfChecks compares the replicas of the groups that this node leads.
type selfChecks struct {
	mu       sync.Mutex // guards what follows
	of       map[id.Shard]checked
	diverged int // replicas that this node found to differ
	compared int // comparisons in which all members took part
}

func newSelfChecks() *selfChecks {
	return &selfChecks{of: map[id.Shard]checked{}}
}

func (c *selfChecks) get(number id.Shard) (checked, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, ok := c.of[number]
	return k, ok
}

func (c *selfChecks) put(number id.Shard, k checked) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[number] = k
}

func (c *selfChecks) drop(number id.Shard) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.of, number)
}

func (c *selfChecks) alarms() []string {
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

// readChecks reads what the self-checks have found.
func (n *Node) readChecks(to send) {
	n.checks.mu.Lock()
	diverged, compared := n.checks.diverged, n.checks.compared
	n.checks.mu.Unlock()
	to(metrics.Comparisons, float64(compared))
	to(metrics.Diverged, float64(diverged))
	to(metrics.ReplicasOut, float64(n.replicas.OutCount()))
	to(metrics.DiskReserve, float64(n.limits.Reserve()))
}

// checkRun compares until ctx ends.
func (n *Node) checkRun(ctx context.Context) {
	tick := time.NewTicker(min(checkTurn, n.cfg.CheckEvery))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		for _, number := range n.replicas.All() {
			group, ok := n.replicas.Group(number)
			if n.replicas.Out(number) || !ok || !group.IsLeader() {
				n.checks.drop(number) // the next leader has the alarm
				continue
			}
			if !n.checkDue(number, group.Applied()) {
				continue
			}
			if err := n.check(ctx, number, group); err != nil && ctx.Err() == nil {
				n.log.Info("replicas were not compared", "group", number, "why", err)
			}
		}
	}
}

// checkDue tells whether a group's replicas are to be compared now. A new leader waits
// as long as one that has just compared.
func (n *Node) checkDue(number id.Shard, applied uint64) bool {
	k, known := n.checks.get(number)
	if !known {
		n.checks.put(number, checked{at: time.Now(), index: applied})
		return false
	}
	since := time.Since(k.at)
	return since >= checkShare*k.took && (since >= n.cfg.CheckEvery || applied >= k.index+checkEntries)
}

// check compares the replicas of a group that this node leads.
func (n *Node) check(ctx context.Context, number id.Shard, group *raftfsm.Group) error {
	last, _ := n.checks.get(number)
	last.at, last.index = time.Now(), group.Applied()
	n.checks.put(number, last)
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
	sums := n.sums(asking, sumQuery{number, name}, servers)
	if own, ok := sums[n.member]; ok {
		last.took = own.Took
	}
	if len(sums) == len(servers) {
		n.checks.counted()
	}
	v := compare(servers, sums)
	last.alarm = v.alarm(number)
	for _, m := range v.diverged {
		if !slices.Contains(last.differ, m) { // else it was counted when it was found
			n.checks.found()
		}
		n.log.Error("a replica's state differs from the majority's", "group", number, "node", m)
		if err := n.replicas.Enough(ctx, number, group.Status().Commit, replicas.VotersBut(servers, m)); err != nil {
			last.alarm = fmt.Sprintf("%s: the state on %s differs from the majority's, and it can't be spared: %v", replicas.Name(number), m, err)
			continue
		}
		if err := n.tellDiverged(ctx, m, divergence{number, name, v.right}); err != nil {
			last.alarm = fmt.Sprintf("%s: the state on %s differs from the majority's, and it does not give way: %v", replicas.Name(number), m, err)
		}
	}
	last.differ = stillDiffer(last.differ, v, sums)
	n.checks.put(number, last)
	return nil
}

// stillDiffer gives the members that are known to differ: those of a comparison, and those
// of the one before that have said nothing since.
func stillDiffer(before []id.Member, v verdict, sums map[id.Member]sumAnswer) []id.Member {
	silent := slices.DeleteFunc(slices.Clone(before), func(m id.Member) bool {
		_, told := sums[m]
		return told
	})
	return append(silent, v.diverged...)
}

func (c *selfChecks) counted() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.compared++
}

func (c *selfChecks) found() {
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
	// Open tells that the replica runs, Known that it has the sum.
	Open   bool          `json:"open"`
	Known  bool          `json:"known"`
	Digest [32]byte      `json:"digest"`
	Took   time.Duration `json:"took"`
	// Software is what made it: another release may write the same state otherwise.
	Software string `json:"software"`
}

func (n *Node) ownSum(q sumQuery) sumAnswer {
	group, open := n.replicas.Group(q.Group)
	if n.replicas.Out(q.Group) || !open {
		return sumAnswer{}
	}
	s, known := group.Sum(q.Check)
	return sumAnswer{Open: true, Known: known, Digest: s.Digest, Took: s.Took, Software: Version + " " + revision()}
}

func (n *Node) serveSum(body []byte) ([]byte, error) {
	var q sumQuery
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, fmt.Errorf("read a question about a sum: %w", err)
	}
	return json.Marshal(n.ownSum(q))
}

// sums asks all members, until each has answered, or does not, or ctx ends.
func (n *Node) sums(ctx context.Context, q sumQuery, servers []raftfsm.Server) map[id.Member]sumAnswer {
	got := map[id.Member]sumAnswer{}
	wait := map[id.Member]bool{}
	for _, s := range servers {
		wait[s.Member] = true
	}
	for len(wait) > 0 {
		for m := range wait {
			a, err := n.askSum(ctx, m, q)
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

func (n *Node) askSum(ctx context.Context, m id.Member, q sumQuery) (sumAnswer, error) {
	if m == n.member {
		return n.ownSum(q), nil
	}
	var a sumAnswer
	ctx, cancel := context.WithTimeout(ctx, checkAsk)
	defer cancel()
	return a, n.peers.Ask(ctx, m, methodSum, q, &a)
}

// verdict is what a comparison has shown.
type verdict struct {
	right    [32]byte
	diverged []id.Member // not as the majority of all voters, ascending
	torn     bool        // there are differences and no majority
}

func (v verdict) alarm(number id.Shard) string {
	if !v.torn {
		return ""
	}
	return fmt.Sprintf("%s: its replicas differ, and no majority says which is right", replicas.Name(number))
}

// compare finds the members whose sum is not that of a majority of all voters, those
// that gave none included. Sums of different software are not compared.
func compare(servers []raftfsm.Server, sums map[id.Member]sumAnswer) verdict {
	type state struct {
		digest   [32]byte
		software string
	}
	votes, kinds, voters := map[state]int{}, map[string]map[[32]byte]bool{}, 0
	for _, s := range servers {
		a, known := sums[s.Member]
		if s.Voter {
			voters++
		}
		if !known {
			continue
		}
		if kinds[a.Software] == nil {
			kinds[a.Software] = map[[32]byte]bool{}
		}
		kinds[a.Software][a.Digest] = true
		if s.Voter {
			votes[state{a.Digest, a.Software}]++
		}
	}
	var v verdict
	for _, different := range kinds {
		v.torn = v.torn || len(different) > 1
	}
	for right, count := range votes {
		if count <= voters/2 {
			continue
		}
		v.right, v.torn = right.digest, false
		for m, a := range sums {
			if a.Software == right.software && a.Digest != right.digest {
				v.diverged = append(v.diverged, m)
			}
		}
	}
	slices.Sort(v.diverged)
	return v
}

// divergence tells a node that its replica's sum is not the majority's.
type divergence struct {
	Group id.Shard        `json:"group"`
	Check raftfsm.CheckID `json:"check"`
	Right [32]byte        `json:"right"`
}

func (n *Node) tellDiverged(ctx context.Context, m id.Member, d divergence) error {
	if m == n.member {
		return n.diverged(d)
	}
	ctx, cancel := context.WithTimeout(ctx, checkAsk)
	defer cancel()
	return n.peers.Ask(ctx, m, methodDiverged, d, nil)
}

func (n *Node) serveDiverged(body []byte) ([]byte, error) {
	var d divergence
	if err := json.Unmarshal(body, &d); err != nil {
		return nil, fmt.Errorf("read of a divergence: %w", err)
	}
	return nil, n.diverged(d)
}

// diverged takes this node's replica out of service, if it has such a sum.
func (n *Node) diverged(d divergence) error {
	group, open := n.replicas.Group(d.Group)
	if !open {
		return fmt.Errorf("group %d is not open", d.Group)
	}
	s, known := group.Sum(d.Check)
	if !known || s.Digest == d.Right {
		return errors.New("the replica here has no other sum")
	}
	n.replicas.Damage(d.Group, fmt.Errorf("%w at index %d", replicas.ErrDiverged, s.Index))
	return nil
}
