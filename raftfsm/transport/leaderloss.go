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
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"facet/internal/id"
	"facet/internal/tick"
)

// When a process ends, its system closes its connections. A follower that loses the last
// stream from its leader's node checks whether the leader is gone: its address refuses
// connections, or it answers that it does not lead.
//
// The follower polls the voters. If a majority says that the leader is gone, the voter with
// the longest log starts an election at once, as if the leader had transferred the
// leadership to it. The others start one a little later if no leader is elected.
//
// Two candidates of one term would cost each other the votes. So a poll also asks the
// others to leave the election to this member. A voter with a shorter log does so for a
// while, and one that stands for election itself says that the leader is not gone.
//
// A leader that is cut off, or whose machine lost its power, closes no connection. A voter
// that has not heard from it for Config.Silence asks it once more, and then polls the voters
// in the same way. A leader that is only slow answers in time: its processor is busy, or its
// link is long. Raft's own timers are longer. They decide when any step here fails.
//
// Raft is safe whenever a member starts an election. The majority is required so that one
// follower that can't reach the leader does not depose it.
const (
	// pollRounds is how many polls a follower makes, one each pollInterval.
	pollRounds   = 30
	pollInterval = 50 * time.Millisecond
	// pollPatience is how many polls a follower leaves to the candidates before it. Then it
	// starts an election itself.
	pollPatience = 10
	// electTries is how often a follower offers raft the election while raft is busy, one
	// time each electInterval.
	electTries    = 50
	electInterval = time.Millisecond
	// pollDialTimeout is the longest wait for a connection to a leader that may be gone.
	pollDialTimeout = 300 * time.Millisecond
	// pollTimeout is the longest wait for the voters' answers, and for the answer of a silent
	// leader. A question takes one round trip.
	pollTimeout = 600 * time.Millisecond
	// silenceTick is how often a follower of a silent leader, at most, checks when it last heard
	// from it.
	silenceTick = 100 * time.Millisecond
	// electionTime is how long a member leaves an election to another one, and how long its
	// own election counts as under way.
	electionTime = pollTimeout
	// answersMax is how many questions of others a member answers at a time: one of each voter,
	// and two late ones.
	answersMax = 6
	// requestTime is how long a candidate's requests for votes may be under way.
	requestTime = 100 * time.Millisecond
	// goneVersion marks the question whether a leader is gone (see question.go). The field
	// Leader names the leader. LastLogIndex is the last index of the log of a member that
	// would stand for election; others send 0. In the answer, Success reports that the leader
	// is gone, and Term is the last index of the voter's log, or 0 if the voter can't lead.
	goneVersion = raft.SnapshotVersion(0x4642)
)

// leaderLoss starts an election early when the leader is gone.
type leaderLoss struct {
	t         *Transport
	silence   time.Duration // Config.Silence
	closed    atomic.Bool
	began     atomic.Pointer[time.Time] // when silence is counted from at the earliest
	asking    atomic.Bool               // this member polls the voters
	answering atomic.Int32              // questions

	mu     sync.Mutex    // guards all below
	stands time.Time     // until then this member's own election is under way
	yields time.Time     // until then this member leaves the election to another
	lost   raft.ServerID // the leader that the elections are for
}

// stand reports whether this member may stand for election after the loss of leader, and notes
// that it does. It may not if it left the election to another.
func (l *leaderLoss) stand(leader raft.ServerID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lose(leader)
	if time.Now().Before(l.yields) {
		return false
	}
	l.stands = time.Now().Add(electionTime)
	return true
}

// lose forgets the elections after the loss of another leader. A member that has not heard who
// led names no leader and takes part in the elections that it finds. The caller holds mu.
func (l *leaderLoss) lose(leader raft.ServerID) {
	if l.lost != leader && leader != "" {
		l.lost, l.stands, l.yields = leader, time.Time{}, time.Time{}
	}
}

// yield leaves the election after the loss of leader to a member that outranks this one. It
// returns false while this member's own election is under way. A member with a longer log
// refuses this one its vote and need not wait, but for the time that the request for the vote
// takes: before it both would stand in one term.
func (l *leaderLoss) yield(leader raft.ServerID, other, own vote) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lose(leader)
	if left := time.Until(l.stands); left > 0 {
		return other.last > own.last && left < electionTime-requestTime
	}
	if l.compare(other, own) < 0 {
		l.yields = time.Now().Add(electionTime)
	}
	return true
}

// compare orders votes: those of the longest logs first, and equal ones in an order that
// differs from group to group.
func (l *leaderLoss) compare(a, b vote) int {
	return cmp.Or(cmp.Compare(b.last, a.last), cmp.Compare(Spread(l.t.group, id.Member(a.member)), Spread(l.t.group, id.Member(b.member))))
}

// begin sets flag, and reports whether it was unset and the transport is open. The caller
// unsets flag afterwards.
func (l *leaderLoss) begin(flag *atomic.Bool) bool {
	return !l.closed.Load() && flag.CompareAndSwap(false, true)
}

// leaderGone is called when the last stream from a node has ended. If the leader runs on
// that node, leaderGone starts to poll the voters.
func (l *leaderLoss) leaderGone(node id.Node) {
	r := l.t.raft.Load()
	if r == nil {
		return
	}
	_, leader := r.LeaderWithID()
	if n, err := id.Member(leader).Node(); err != nil || n != node {
		return
	}
	l.suspect(r, leader)
}

// suspect starts to poll the voters about leader, unless a poll is under way.
func (l *leaderLoss) suspect(r *raft.Raft, leader raft.ServerID) {
	if !l.following(r, leader) || !l.begin(&l.asking) {
		return
	}
	l.t.wg.Go(func() { // ends after pollRounds, or with done
		defer l.asking.Store(false)
		l.campaign(r, leader)
	})
}

// watchSilence polls the voters when this member has not heard from a leader for too long.
// It ends with done.
func (l *leaderLoss) watchSilence() {
	timer := time.NewTimer(silenceTick)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-l.t.done:
			return
		}
		r := l.t.raft.Load()
		left := l.left(r)
		timer.Reset(max(min(left, tick.Until(tick.Interval)), silenceTick))
		if left > 0 || r.State() != raft.Follower || !l.t.Gate.Admitted() || !isVoter(r, l.t.self.self) || l.t.mayLead() != nil {
			continue
		}
		_, leader := r.LeaderWithID()
		l.suspect(r, leader)
	}
}

// silent reports whether this member has not heard from a leader for Config.Silence, since
// it was opened or the group was founded. A member that may not vote has no say.
func (l *leaderLoss) silent(r *raft.Raft) bool { return l.t.Gate.Admitted() && l.left(r) <= 0 }

// left returns how long a leader may still be silent. What a member that leads has heard is
// older, but it hears of itself when it ceases to lead.
func (l *leaderLoss) left(r *raft.Raft) time.Duration {
	if r.State() == raft.Leader {
		return l.silence
	}
	return l.silence - min(time.Since(*l.began.Load()), time.Since(r.LastContact()))
}

// isVoter reports whether member is a voter, as far as this member knows.
func isVoter(r *raft.Raft, member []byte) bool {
	return slices.ContainsFunc(r.GetConfiguration().Configuration().Servers, func(s raft.Server) bool {
		return s.Suffrage == raft.Voter && string(s.ID) == string(member)
	})
}

// answers reports whether leader answers within pollTimeout that it leads.
func (l *leaderLoss) answers(leader raft.ServerID) bool {
	if leader == "" {
		return false
	}
	leads := make(chan bool, 1)
	l.t.wg.Go(func() { // ends with its call
		gone, _, err := l.askGone(leader, leader, 0)
		leads <- err == nil && !gone
	})
	late := time.NewTimer(pollTimeout)
	defer late.Stop()
	select {
	case ok := <-leads:
		return ok
	case <-late.C:
		return false
	case <-l.t.done:
		return true
	}
}

// mute reports whether this member has not heard from leader for too long, nor gets an answer.
func (l *leaderLoss) mute(r *raft.Raft, leader raft.ServerID) bool {
	return l.silent(r) && !l.answers(leader) && l.silent(r)
}

// following reports whether this member follows leader, or no leader.
func (l *leaderLoss) following(r *raft.Raft, leader raft.ServerID) bool {
	_, now := r.LeaderWithID()
	return r.State() == raft.Follower && (now == leader || now == "")
}

// campaign polls the voters, and starts an election when it is this member's turn. It
// returns when another member leads. A new term shows that another member stands for
// election, and a second candidate might cost it the votes. So this member then leaves it
// the time of pollPatience, unless this member's log is longer, so that the other needs a
// majority without it.
func (l *leaderLoss) campaign(r *raft.Raft, leader raft.ServerID) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	agreed, term, contested := 0, r.CurrentTerm(), false
	for range pollRounds {
		if !l.following(r, leader) || l.t.mayLead() != nil || l.t.health.Silent() {
			return
		}
		var dead, first, longest bool
		if l.mute(r, leader) || l.gone(leader) {
			dead, first, longest = l.poll(r, leader)
		}
		if now := r.CurrentTerm(); now != term {
			agreed, term, contested = 0, now, true
		}
		if dead {
			agreed++
		}
		if dead && (first && !contested || longest || agreed > pollPatience) && l.following(r, leader) && l.stand(leader) {
			l.elect(func() bool { return l.following(r, leader) })
			return
		}
		select {
		case <-tick.C:
		case <-l.t.done:
			return
		}
	}
}

// elect makes raft stand for election while this member follows. The message never waits
// for raft's main goroutine: raft might have won an election of its own until then, and a
// leader that reads the message ceases to lead.
func (l *leaderLoss) elect(following func() bool) {
	offer := raft.RPC{Command: &raft.TimeoutNowRequest{RPCHeader: l.t.self.header()}, RespChan: make(chan raft.RPCResponse, 1)}
	retry := time.NewTicker(electInterval)
	defer retry.Stop()
	for tries := electTries; tries > 0 && following(); tries-- {
		select {
		case l.t.out <- offer:
			return
		default:
		}
		select {
		case <-retry.C:
		case <-l.t.done:
			return
		}
	}
}

// vote is the answer of one voter in a poll.
type vote struct {
	member raft.ServerID
	gone   bool
	last   uint64
}

// poll asks the other voters. This member says that the leader is gone. dead reports that a
// majority says so. first reports that this member comes first of all that answer: a voter
// that stands for election says that the leader is not gone. longest reports that its log is
// longer than those of all others.
func (l *leaderLoss) poll(r *raft.Raft, leader raft.ServerID) (dead, first, longest bool) {
	own := vote{raft.ServerID(l.t.self.self), true, r.LastIndex()}
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
			l.t.wg.Go(func() { // ends with its call
				gone, last, err := l.askGone(s.ID, leader, own.last)
				votes <- vote{s.ID, err == nil && gone, last}
			})
		}
	}
	candidates, agreed := []vote{own}, 1
	late := time.After(pollTimeout)
	for asked > 0 {
		select {
		case v := <-votes:
			asked--
			candidates = append(candidates, v)
			if v.gone {
				agreed++
			}
		case <-late:
			asked = 0
		case <-l.t.done:
			return false, false, false
		}
	}
	slices.SortFunc(candidates, l.compare)
	first = candidates[0].member == own.member
	return voter && agreed > voters/2, first, first && len(candidates) > 1 && candidates[1].last < own.last
}

// gone reports whether the leader's process has ended, or no longer leads.
func (l *leaderLoss) gone(leader raft.ServerID) bool {
	node, err := id.Member(leader).Node()
	if err != nil || l.t.streams.from(node) > 0 {
		return false
	}
	conn, err := l.t.streams.Dial(raft.ServerAddress(leader), pollDialTimeout)
	if err != nil {
		return !isTimeout(err)
	}
	if err := conn.Close(); err != nil {
		return false
	}
	gone, _, err := l.askGone(leader, leader, 0)
	return err == nil && gone
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}

// askGone asks a member whether leader is gone. own is the last index of this member's log if
// this member would stand for election, or 0. last is that of the asked member's log.
func (l *leaderLoss) askGone(to, leader raft.ServerID, own uint64) (gone bool, last uint64, err error) {
	q := raft.InstallSnapshotRequest{RPCHeader: l.t.self.header(), SnapshotVersion: goneVersion, Leader: []byte(leader), LastLogIndex: own}
	var a raft.InstallSnapshotResponse
	err = retryBroken(func() error {
		a = raft.InstallSnapshotResponse{}
		return l.t.NetworkTransport.InstallSnapshot(to, raft.ServerAddress(to), &q, &a, bytes.NewReader(nil))
	})
	if err == nil && to != leader { // another member on the leader's node shows that the leader is gone
		err = l.t.answersFor(to, a.RPCHeader)
	}
	if err != nil {
		return false, 0, err
	}
	return a.Success, a.Term, nil
}

// answerGone answers askGone. It answers a few questions at a time, because it may have to
// dial the leader.
func (l *leaderLoss) answerGone(rpc raft.RPC, q *raft.InstallSnapshotRequest) {
	r, leader := l.t.raft.Load(), raft.ServerID(q.Leader)
	if l.answering.Add(1) > answersMax || r == nil || l.t.health.Failed() != nil || l.closed.Load() {
		l.answering.Add(-1)
		rpc.Respond(nil, fmt.Errorf("%w: no answer now", errMalformed))
		return
	}
	l.t.wg.Go(func() { // ends with its connection
		defer l.answering.Add(-1)
		_, known := r.LeaderWithID()
		gone := r.State() != raft.Leader && known == "" ||
			string(leader) == string(l.t.self.self) && (r.State() != raft.Leader || l.t.health.Silent()) ||
			l.following(r, leader) && (l.silent(r) || l.gone(leader))
		last := r.LastIndex()
		if gone && q.LastLogIndex > 0 && isVoter(r, q.ID) {
			gone = l.yield(leader, vote{raft.ServerID(q.ID), true, q.LastLogIndex}, vote{raft.ServerID(l.t.self.self), true, last})
		}
		if l.t.mayLead() != nil {
			last = 0 // others need not wait for this member
		}
		rpc.Respond(&raft.InstallSnapshotResponse{RPCHeader: l.t.self.header(), Term: last, Success: gone}, nil)
	})
}

// Spread returns a number by which members are ordered. The order differs from group to
// group: the group comes first, because the last bytes hardly change the upper bits of FNV.
func Spread(group id.Shard, m id.Member) uint32 {
	h := fnv.New32a()
	fmt.Fprintf(h, "%d %s", group, m)
	return h.Sum32()
}
