package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"facet/internal/id"
	"facet/raftfsm/health"
	"facet/raftfsm/snapshots"
	"facet/shard/segment"
)

const (
	// EntriesMax is the most entries of one append, on disk and on the wire: 64 entries
	// of 256 KiB are 16 MiB.
	EntriesMax = 64
	// connsPerPeer is the most idle connections to one other member. Heartbeats, appends
	// and read rounds each use one.
	connsPerPeer = 3
	// Timeout is the longest time of one exchange with a member. A snapshot may take one
	// Timeout for each 256 KiB.
	Timeout = 4 * time.Second
)

// Transport is a raft.Transport. It is built on raft.NetworkTransport, and differs from it
// in these ways:
//
//   - A heartbeat never changes raft's state on the goroutine that received it. In
//     hashicorp/raft it may change term and state during a write of the main goroutine,
//     and logs diverge (#695). Here a heartbeat of the present term is answered at once,
//     from values that can be read atomically, and the main goroutine gets a copy. Any
//     other heartbeat waits for the main goroutine. The answer says "at this moment I had
//     not left your term", and a leader may conclude no more from it: a vote for a later
//     term is on disk before raft's term changes, so a new leader is elected after it.
//   - A leader whose disk hangs sends nothing, so that another is elected (#503, #614,
//     #666).
//   - It has no pipeline, which stops for ever after a follower's disk stalled (#612).
//   - A member that returns gets entries at once (heldAppends). Connections that ended
//     with a process cost no vote (retryBroken).
//   - A node that returns without its disk does not answer for its former member
//     (answersFor).
//   - When the leader's process has ended or its machine is gone, its followers elect
//     another without waiting for their timers (leaderLoss).
//   - Of two processes that run for one member, one is heard (Holder).
//   - A message is checked before raft sees it: raft panics on a configuration that it
//     can't decode and on an entry type that it does not know.
//   - A member that has lost state is noticed, and does not vote (marks.go).
//   - Heartbeats and proofs of leadership travel with those of other groups (Beats, Proofs).
type Transport struct {
	*raft.NetworkTransport

	group    id.Shard
	check    func(entry []byte) error
	differs  func(*raft.Log) error
	rewrite  error // set by contradiction; nil: none was noted
	streams  *streams
	health   *health.Monitor
	segments *segment.Store // nil: none
	self     identity
	raft     atomic.Pointer[raft.Raft]
	held     heldAppends
	loss     leaderLoss
	commits  announcements
	// Shrunk receives when a follower has less of the log than it had. Capacity 1.
	Shrunk chan struct{}
	shared *Beats  // nil: every heartbeat goes over the group's streams
	proofs *Proofs // nil: every proof does
	commit func(term uint64) (index uint64, ok bool)
	marks  Marks // nil: none are kept
	// Gate keeps the member out of elections until its node has asked its peers.
	Gate     *Gate
	resigned atomic.Bool // this member is stopping and takes no leadership

	out   chan raft.RPC // to raft's main goroutine; unbuffered, like raft's own
	beats chan raft.RPC // one answered heartbeat; further ones are dropped until it is taken
	done  chan struct{}
	once  sync.Once
	wg    sync.WaitGroup // pump, and answers to questions
	asked atomic.Bool    // a question is being answered
}

var (
	_ raft.Transport   = (*Transport)(nil)
	_ raft.WithPreVote = (*Transport)(nil)
	_ raft.WithClose   = (*Transport)(nil)
)

// Config configures a Transport.
type Config struct {
	Group    id.Shard
	Self     id.Member
	Stream   StreamLayer                     // closed by Close
	Resolve  func(id.Member) (string, error) // the present address of a member; must not block
	Health   *health.Monitor
	Segments *segment.Store // nil: none
	Holder   Holder         // nil: one process runs for each member
	Silence  time.Duration  // without a leader's word for this long, a follower asks whether it is gone
	Log      hclog.Logger
	// CheckCommand returns an error if the entry of a command is damaged.
	CheckCommand func(entry []byte) error
	// Contradiction returns an error if this member has another committed entry in the place
	// of one that a leader sends or names (logstore.Log.Contradiction).
	Contradiction func(*raft.Log) error
	// Marks keeps what members have acknowledged. With it, the member neither votes nor
	// stands for election before Admit. nil keeps nothing.
	Marks Marks
	// Beats sends heartbeats together with those of other groups. nil sends each by itself.
	Beats *Beats
	// Proofs sends proofs of leadership together with those of other groups. nil sends each by
	// itself. Commit returns the commit index, if an entry of the leader's term is applied.
	Proofs *Proofs
	Commit func(term uint64) (index uint64, ok bool)
	// HasState makes a member with Marks receive nothing before Receive.
	HasState bool
}

// New returns a Transport that receives messages. The caller calls Attach, and at the end
// Close and Wait.
func New(cfg Config) *Transport {
	s := newStreams(&cfg)
	t := &Transport{
		group:    cfg.Group,
		check:    cfg.CheckCommand,
		differs:  cfg.Contradiction,
		streams:  s,
		health:   cfg.Health,
		segments: cfg.Segments,
		marks:    cfg.Marks,
		shared:   cfg.Beats,
		proofs:   cfg.Proofs,
		commit:   cfg.Commit,
		Shrunk:   make(chan struct{}, 1),
		Gate:     newGate(),
		out:      make(chan raft.RPC),
		beats:    make(chan raft.RPC, 1),
		done:     make(chan struct{}),
	}
	t.self = identity{[]byte(cfg.Self), cfg.Holder, &t.raft}
	t.loss.t, t.loss.silence = t, cfg.Silence
	t.NetworkTransport = raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: s, MaxPool: connsPerPeer, MaxRPCsInFlight: 1, Timeout: Timeout,
		Logger: cfg.Log, MsgpackUseNewTimeFormat: true,
	})
	s.nodeGone = t.loss.leaderGone
	switch {
	case cfg.Marks == nil:
		t.Gate.Admit()
	case !cfg.HasState:
		t.Gate.Receive()
	}
	t.wg.Go(t.pump)
	return t
}

// Attach sets the raft that the transport serves. raft.NewRaft needs the transport first.
func (t *Transport) Attach(r *raft.Raft) {
	t.Founded()
	t.raft.Store(r)
	if t.shared != nil {
		t.shared.groups.add(t)
	}
	if t.proofs != nil {
		t.proofs.groups.add(t)
	}
	t.wg.Go(t.loss.watchSilence)
}

// Founded tells that the group was founded just now, so that no leader is missed yet.
func (t *Transport) Founded() {
	now := time.Now()
	t.loss.began.Store(&now)
}

// Resign makes this member refuse the leadership for good.
func (t *Transport) Resign() { t.resigned.Store(true) }

// Consumer returns the channel of messages for raft's main goroutine.
func (t *Transport) Consumer() <-chan raft.RPC { return t.out }

// pump delivers the messages that NetworkTransport received.
func (t *Transport) pump() {
	if !t.Gate.awaitReceive(t.done) {
		return
	}
	for {
		select {
		case rpc := <-t.NetworkTransport.Consumer():
			if err := t.self.admitRPC(rpc.Command); err != nil {
				rpc.Respond(nil, err)
				continue
			}
			if t.question(rpc) || t.refused(rpc) {
				continue
			}
			if err := errors.Join(checkRPC(t.check, rpc.Command), t.contradiction(rpc.Command)); err != nil {
				rpc.Respond(nil, err)
				continue
			}
			t.deliver(rpc)
		case rpc := <-t.beats:
			t.deliver(rpc)
		case <-t.done:
			return
		}
	}
}

// Point is an entry that a leader knows to be committed.
type Point struct {
	Index  uint64
	Term   uint64 // of the entry, and of the leader
	Leader id.Member
}

// Committed tells raft, in the name of p's leader, that p is committed. It reports whether
// raft accepted that before ctx ended.
func (t *Transport) Committed(ctx context.Context, p Point) bool {
	answer := make(chan raft.RPCResponse, 1)
	q := p.append(raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(p.Leader), Addr: []byte(p.Leader)})
	if t.health.Failed() != nil {
		return false
	}
	select {
	case t.out <- raft.RPC{Command: q, RespChan: answer}:
	case <-ctx.Done():
		return false
	case <-t.done:
		return false
	}
	select {
	case a := <-answer:
		r, ok := a.Response.(*raft.AppendEntriesResponse)
		return ok && a.Error == nil && r.Success
	case <-ctx.Done():
		return false
	case <-t.done:
		return false
	}
}

// contradiction takes the group out of service if a leader replaces entries that this
// member knows to be committed. A leader first names the entry before those that it sends,
// and goes back until both members have it. So a wrong one is only noted: the entries that
// follow show where the logs part. A snapshot in their place does not.
func (t *Transport) contradiction(command any) (err error) {
	r := t.raft.Load()
	if r == nil {
		return nil
	}
	var term uint64
	switch q := command.(type) {
	case *raft.AppendEntriesRequest:
		term = q.Term
		// What a leader of this term or an earlier one has committed, every later leader has. A
		// deposed leader may lack it. So the term is read after the commit index.
		if before := t.differs(&raft.Log{Index: q.PrevLogEntry, Term: q.PrevLogTerm}); before != nil && term >= r.CurrentTerm() {
			t.rewrite = before
		}
		for i := 0; i < len(q.Entries) && err == nil; i++ {
			err = t.differs(q.Entries[i])
		}
	case *raft.InstallSnapshotRequest:
		term, err = q.Term, t.rewrite
	}
	if err == nil || term < r.CurrentTerm() {
		return nil
	}
	t.health.Fail(err)
	return err
}

// AppendEntries sends a heartbeat or entries, unless the disk has hung too long. Entries
// for a member that can't be reached are held until the member answers a heartbeat.
func (t *Transport) AppendEntries(to raft.ServerID, at raft.ServerAddress,
	q *raft.AppendEntriesRequest, a *raft.AppendEntriesResponse,
) error {
	if isHeartbeat(q) {
		err := t.sendBeat(to, at, q, a, t.together)
		if err == nil {
			t.tell(to, q.Term)
		}
		return err
	}
	for again := false; ; again = true {
		if err := t.awaitReached(to, q.Term); err != nil {
			return err
		}
		*a = raft.AppendEntriesResponse{}
		err := t.append(to, at, q, a, t.NetworkTransport.AppendEntries)
		if err == nil {
			t.tell(to, q.Term)
			return nil
		}
		t.held.lost(to, q.Term)
		if again { // heartbeats are answered and entries are not
			return err
		}
	}
}

// carrier brings an append to a member and fills its answer in.
type carrier func(to raft.ServerID, at raft.ServerAddress, q *raft.AppendEntriesRequest, a *raft.AppendEntriesResponse) error

func (t *Transport) append(to raft.ServerID, at raft.ServerAddress,
	q *raft.AppendEntriesRequest, a *raft.AppendEntriesResponse, by carrier,
) error {
	if err := t.mute(); err != nil {
		return err
	}
	before, err := t.known(to)
	if err != nil {
		return err
	}
	has := t.commits.has(to, q.Term)
	if err := by(to, at, q, a); err != nil {
		return err
	}
	if err := t.answersFor(to, a.RPCHeader); err != nil {
		return err
	}
	if err := t.compare(to, before, q, a); err != nil {
		return err
	}
	if a.Success {
		t.commits.answered(to, q)
	}
	if a.Success && isHeartbeat(q) && a.LastLog < has {
		select {
		case t.Shrunk <- struct{}{}:
		default:
		}
	}
	return nil
}

// answersFor returns an error if h does not come from the process that acts for the member
// to. A node that lost its disk returns as another member with the same id and certificate,
// at the same address. Its answers must not count as those of the former member, which had
// entries and had voted.
func (t *Transport) answersFor(to raft.ServerID, h raft.RPCHeader) error {
	if string(h.ID) == string(to) {
		return t.self.admit(&h)
	}
	return fmt.Errorf("%s answered for %s: %w", h.ID, to, errOtherMember)
}

// errOtherMember is returned when a node has become another member.
var errOtherMember = errors.New("raftfsm: another member has the node's id")

// InstallSnapshot sends a snapshot without the segments that the member has. It waits until
// the member can be reached. It sends nothing if the disk has hung too long.
func (t *Transport) InstallSnapshot(to raft.ServerID, at raft.ServerAddress,
	q *raft.InstallSnapshotRequest, a *raft.InstallSnapshotResponse, data io.Reader,
) error {
	if err := t.awaitReached(to, q.Term); err != nil {
		return err
	}
	var known raft.AppendEntriesResponse // a snapshot's answer does not say whose it is
	if err := t.append(to, at, &raft.AppendEntriesRequest{RPCHeader: t.self.header(), Term: q.Term}, &known, t.NetworkTransport.AppendEntries); err != nil {
		t.held.lost(to, q.Term)
		return err
	}
	if s, ok := data.(*snapshots.Snapshot); ok && s.Segmented() {
		less := *q
		data, less.Size = s.OnWire(t.ask(to, at, s))
		q = &less
	}
	before, err := t.known(to)
	if err != nil {
		return err
	}
	err = t.NetworkTransport.InstallSnapshot(to, at, q, a, data)
	if err != nil {
		t.held.lost(to, q.Term)
	} else if a.Success {
		t.add(to, before, q.Term, q.LastLogIndex)
	}
	return err
}

// errStalled is returned for a message that is not sent because this member's disk hangs.
var errStalled = errors.New("raftfsm: not sent, the disk has not answered")

// mute returns the reason why this member must not send now, or nil.
func (t *Transport) mute() error {
	if err := t.health.Failed(); err != nil {
		return err
	}
	if t.health.Withhold() {
		return errStalled
	}
	return t.self.mayAct()
}

// AppendEntriesPipeline returns raft.ErrPipelineReplicationNotSupported.
func (t *Transport) AppendEntriesPipeline(raft.ServerID, raft.ServerAddress) (raft.AppendPipeline, error) {
	return nil, raft.ErrPipelineReplicationNotSupported
}

// EncodePeer returns the field Addr of a header. raft calls it for this member only.
func (t *Transport) EncodePeer(raft.ServerID, raft.ServerAddress) []byte { return t.self.address() }

// Close closes all streams. It does not wait for their users, because raft may be the
// caller.
func (t *Transport) Close() error {
	t.once.Do(func() {
		if t.shared != nil {
			t.shared.remove(t)
		}
		if t.proofs != nil {
			t.proofs.groups.remove(t)
		}
		t.loss.closed.Store(true) // streams that close from now on say nothing of a leader
		close(t.done)
	})
	err := t.NetworkTransport.Close()
	t.CloseStreams() // the idle connections
	return err
}

// Wait waits until all goroutines of a closed transport have ended.
func (t *Transport) Wait() {
	t.streams.wg.Wait() // first: the end of a stream may start something
	t.wg.Wait()
}

// errMalformed rejects a message that would make raft panic.
var errMalformed = errors.New("raftfsm: malformed message")

// checkRPC returns an error for a message with damaged entries, or with contents that raft
// does not check.
func checkRPC(check func([]byte) error, command any) error {
	switch q := command.(type) {
	case *raft.AppendEntriesRequest:
		if len(q.Entries) > EntriesMax {
			return fmt.Errorf("%w: %d entries", errMalformed, len(q.Entries))
		}
		for i, l := range q.Entries {
			if l == nil || l.Index != q.PrevLogEntry+1+uint64(i) || l.Term > q.Term {
				return fmt.Errorf("%w: entry %d of %d", errMalformed, i, len(q.Entries))
			}
			if err := checkLog(check, l); err != nil {
				return fmt.Errorf("entry %d: %w", l.Index, err)
			}
		}
	case *raft.InstallSnapshotRequest:
		if q.SnapshotVersion != raft.SnapshotVersionMax || q.Size < 0 || q.Size > snapshots.BytesMax {
			return fmt.Errorf("%w: snapshot of %d bytes", errMalformed, q.Size)
		}
		return checkConfiguration(q.Configuration)
	}
	return nil
}

func checkLog(check func([]byte) error, l *raft.Log) error {
	switch l.Type {
	case raft.LogCommand:
		return check(l.Data)
	case raft.LogConfiguration:
		return checkConfiguration(l.Data)
	case raft.LogNoop, raft.LogBarrier:
		return nil
	default:
		return fmt.Errorf("%w: entry of type %d", errMalformed, l.Type)
	}
}

// checkConfiguration returns an error if raft would panic when it decodes b.
func checkConfiguration(b []byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: configuration", errMalformed)
		}
	}()
	if len(raft.DecodeConfiguration(b).Servers) == 0 {
		return fmt.Errorf("%w: configuration without members", errMalformed)
	}
	return nil
}
