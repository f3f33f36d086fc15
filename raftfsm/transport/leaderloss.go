package transport

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"facet/internal/id"
)

// When a process ends, however it ends, its system closes its connections. A follower
// that loses the last stream from its leader's node looks whether the leader lives: it
// is gone if its address refuses connections, or if it answers that it does not lead.
// When a majority of the voters says so, the one with the longest log stands for
// election at once, as if the leader had handed the leadership to it, and the others a
// little later if that does not help. A leader that is cut off, or whose machine lost
// its power, closes nothing: then raft's timers decide, as they do when any of this
// fails.
//
// Raft's safety does not depend on when somebody stands for election. The majority is
// there for its peace: a follower that alone does not reach the leader must not take
// the leadership from it.
const (
	// pollRounds is how often a follower asks, pollInterval after each time.
	pollRounds   = 12
	pollInterval = 50 * time.Millisecond
	// pollPatience is how many rounds a follower leaves to those who go first.
	pollPatience = 3
	// pollDialTimeout bounds the wait for a connection to a leader that may be gone.
	pollDialTimeout = 300 * time.Millisecond
	// goneVersion marks the question whether a member is gone as the leader: an
	// InstallSnapshot, as offerVersion is, with the member as its Leader. The answer
	// says so in Success, and how far the log goes in Term.
	goneVersion = raft.SnapshotVersion(0x4642)
)

// leaderLoss is what a member does about the end of its leader.
type leaderLoss struct {
	mu        sync.Mutex // guards what follows
	closed    bool
	asking    bool // after a leader
	answering bool
}

// begin tells whether something may be done that flag stands for; end ends it.
func (l *leaderLoss) begin(flag *bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || *flag {
		return false
	}
	*flag = true
	return true
}

func (l *leaderLoss) end(flag *bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*flag = false
}

func (l *leaderLoss) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
}

// leaderGone looks after the leader when the last stream from its node has ended.
func (t *Transport) leaderGone(node id.Node) {
	r := t.raft.Load()
	if r == nil {
		return
	}
	_, leader := r.LeaderWithID()
	if n, err := id.Member(leader).Node(); err != nil || n != node || !t.following(r, leader) {
		return
	}
	if t.loss.begin(&t.loss.asking) {
		t.wg.Go(func() { // ends after pollRounds, or with done
			defer t.loss.end(&t.loss.asking)
			t.campaign(r, leader)
		})
	}
}

// following tells whether this member follows leader, or nobody.
func (t *Transport) following(r *raft.Raft, leader raft.ServerID) bool {
	_, now := r.LeaderWithID()
	return r.State() == raft.Follower && (now == leader || now == "")
}

// campaign stands for election, when it is time to, or returns when another leads.
func (t *Transport) campaign(r *raft.Raft, leader raft.ServerID) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	agreed := 0
	for range pollRounds {
		if !t.following(r, leader) || t.mayLead() != nil || t.health.Silent() {
			return
		}
		dead, first := t.poll(r, leader)
		if dead {
			agreed++
		}
		if dead && (first || agreed > pollPatience) && t.following(r, leader) {
			t.deliver(raft.RPC{Command: &raft.TimeoutNowRequest{RPCHeader: t.header}, RespChan: make(chan raft.RPCResponse, 1)})
			return
		}
		select {
		case <-tick.C:
		case <-t.done:
			return
		}
	}
}

// vote is a voter's word on a leader.
type vote struct {
	member raft.ServerID
	gone   bool
	last   uint64
}

// poll tells whether a majority of the voters says that the leader is gone, and
// whether this member is the first of them to stand for election.
func (t *Transport) poll(r *raft.Raft, leader raft.ServerID) (dead, first bool) {
	own := vote{raft.ServerID(t.header.ID), t.gone(leader), r.LastIndex()}
	if !own.gone {
		return false, false
	}
	var asked, voters int
	votes := make(chan vote, len(r.GetConfiguration().Configuration().Servers))
	voter := false
	for _, s := range r.GetConfiguration().Configuration().Servers {
		if s.Suffrage != raft.Voter {
			continue
		}
		voters++
		switch s.ID {
		case own.member:
			voter = true
		case leader:
		default:
			asked++
			t.wg.Go(func() { // ends with its call
				gone, last, err := t.askGone(s.ID, leader)
				votes <- vote{s.ID, err == nil && gone, last}
			})
		}
	}
	candidates := []vote{own}
	late := time.After(pollDialTimeout)
	for range asked {
		select {
		case v := <-votes:
			if v.gone {
				candidates = append(candidates, v)
			}
		case <-late:
		case <-t.done:
			return false, false
		}
	}
	slices.SortFunc(candidates, func(a, b vote) int {
		return cmp.Or(cmp.Compare(b.last, a.last), cmp.Compare(Spread(t.group, id.Member(a.member)), Spread(t.group, id.Member(b.member))))
	})
	return voter && len(candidates) > voters/2, candidates[0].member == own.member
}

// gone tells whether a leader's process has ended, or does not lead any more.
func (t *Transport) gone(leader raft.ServerID) bool {
	node, err := id.Member(leader).Node()
	if err != nil || t.streams.from(node) > 0 {
		return false
	}
	conn, err := t.streams.Dial(raft.ServerAddress(leader), pollDialTimeout)
	if err != nil {
		return !isTimeout(err)
	}
	if err := conn.Close(); err != nil {
		return false
	}
	gone, _, err := t.askGone(leader, leader)
	return err == nil && gone
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}

// askGone asks a member whether leader is gone, and how far the member's log goes.
func (t *Transport) askGone(to, leader raft.ServerID) (gone bool, last uint64, err error) {
	q := raft.InstallSnapshotRequest{RPCHeader: t.header, SnapshotVersion: goneVersion, Leader: []byte(leader)}
	var a raft.InstallSnapshotResponse
	err = retryBroken(func() error {
		a = raft.InstallSnapshotResponse{}
		return t.NetworkTransport.InstallSnapshot(to, raft.ServerAddress(to), &q, &a, bytes.NewReader(nil))
	})
	return a.Success, a.Term, err
}

// answerGone answers askGone, one at a time: it may take a while to find out.
func (t *Transport) answerGone(rpc raft.RPC, leader raft.ServerID) {
	r := t.raft.Load()
	if r == nil || t.health.Failed() != nil || !t.loss.begin(&t.loss.answering) {
		rpc.Respond(nil, fmt.Errorf("%w: no answer now", errMalformed))
		return
	}
	t.wg.Go(func() { // ends with its connection
		defer t.loss.end(&t.loss.answering)
		_, known := r.LeaderWithID()
		gone := r.State() != raft.Leader && known == "" ||
			string(leader) == string(t.header.ID) && r.State() != raft.Leader ||
			t.following(r, leader) && t.gone(leader)
		rpc.Respond(&raft.InstallSnapshotResponse{RPCHeader: t.header, Term: r.LastIndex(), Success: gone}, nil)
	})
}

// Spread orders members, differently from group to group.
func Spread(group id.Shard, m id.Member) uint32 {
	h := fnv.New32a()
	fmt.Fprintf(h, "%s %d", m, group)
	return h.Sum32()
}
