package raftfsm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"facet/internal/id"
	"facet/internal/trace"
	"facet/raftfsm/health"
	"facet/raftfsm/logstore"
	"facet/raftfsm/snapshots"
	"facet/raftfsm/transport"
	"facet/shard/segment"
)

// Group is one member of a Raft group. Its methods may be called from any
// goroutine.
type Group struct {
	cfg       Config
	raft      *raft.Raft
	fsm       *fsm
	health    *health.Monitor
	disk      logstore.Disk
	stable    *logstore.Stable
	log       *logstore.Log
	logs      *raft.LogCache // of log
	segments  *segment.Store // nil: the machine has none
	snapshots *snapshots.Store
	transport *transport.Transport

	leader leaderWatch

	led    atomic.Uint64 // how often this member became the leader
	slots  chan struct{} // holds one element for each command that waits for its answer
	reads  *reads
	eraser eraser

	stop  chan struct{}  // closed when Close begins
	loops sync.WaitGroup // started by start; they end with stop
	asks  sync.WaitGroup // questions to other members; ended by the transport's end

	mu      sync.Mutex // guards closing, offered, and every calls.Add
	closing bool
	offered map[id.Member]offer // the last transfer to a member that failed
	calls   sync.WaitGroup      // calls into raft that must get their answer before it stops

	closeOnce sync.Once
	closeErr  error
}

// Open starts the member that cfg describes on the state in cfg.Dir. m must be empty. It
// gets the newest snapshot, and later the entries that a leader reports as committed.
//
// Open fails before the member can vote, and closes cfg.Stream, if a file in cfg.Dir is
// damaged (ErrCorrupt) or gone (Config.Prepared), or if another process has cfg.Dir open.
func Open(cfg Config, m Machine) (*Group, error) { return open(cfg, m, logstore.OpenDisk) }

func open(cfg Config, m Machine, under func(dir string) (logstore.Disk, error)) (*Group, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	cfg.Timing = cfg.Timing.jittered(cfg.Group, cfg.Self)
	g := &Group{
		cfg:    cfg,
		health: health.New(cfg.Timing.Stall, cfg.Timing.StallFatal),
		slots:  make(chan struct{}, proposalsMax),
		stop:   make(chan struct{}), offered: make(map[id.Member]offer),
	}
	g.reads, g.eraser.g, g.eraser.orders = newReads(g), g, make(chan struct{}, 1)
	if err := g.openStores(m, under); err != nil {
		cfg.Stream.Close()
		return nil, fmt.Errorf("open group %d: %w", cfg.Group, err)
	}
	if err := g.start(m); err != nil {
		return nil, fmt.Errorf("open group %d: %w", cfg.Group, err)
	}
	return g, nil
}

// openStores opens and verifies the files in cfg.Dir. The sealed parts of segments are
// verified later, when they are read (snapshots.Store.Scrub).
func (g *Group) openStores(m Machine, under func(dir string) (logstore.Disk, error)) (err error) {
	if g.cfg.Prepared {
		if err := logstore.Exists(g.cfg.Dir); err != nil {
			return fmt.Errorf("look for %s: %w", logstore.File, err)
		}
	}
	if err := os.MkdirAll(g.cfg.Dir, 0o700); err != nil {
		return fmt.Errorf("make the group's folder: %w", err)
	}
	if g.disk, err = under(g.cfg.Dir); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			g.health.Close()
			if g.snapshots != nil {
				g.snapshots.Close()
			}
			err = errors.Join(err, g.disk.Close())
		}
	}()
	g.stable = logstore.NewStable(g.disk, g.health)
	g.log = logstore.NewLog(g.disk, g.health)
	if g.logs, err = raft.NewLogCache(logCacheEntries, g.log); err != nil {
		return err
	}
	if g.segments, err = g.openSegments(m); err != nil {
		return err
	}
	g.snapshots, err = snapshots.New(snapshots.Config{
		Dir: g.cfg.Dir, Group: g.cfg.Group, Logs: g.logs, Own: g.log, Health: g.health, Segments: g.segments,
		Log: g.cfg.Log, RaftLog: newBridge(g.cfg.Log),
	})
	if err != nil {
		return err
	}
	if err := g.snapshots.Sweep(); err != nil {
		return err
	}
	newest, err := g.snapshots.Verify()
	if err != nil {
		return err
	}
	if newest == nil {
		return errors.Join(g.log.Complete(0, 0), g.log.Verify())
	}
	if err := g.log.Complete(newest.Index, newest.Term); err != nil {
		return err
	}
	// A crash may have left the log as it was before a snapshot was installed.
	if err := g.snapshots.Reconcile(newest); err != nil {
		return err
	}
	return g.log.Verify()
}

// openSegments opens the segments of a Keeper, and returns nil for another machine.
func (g *Group) openSegments(m Machine) (*segment.Store, error) {
	k, ok := m.(Keeper)
	if !ok {
		return nil, nil
	}
	s, err := segment.Open(snapshots.SegmentsDir(g.cfg.Dir), segment.Options{
		Bytes:   g.cfg.SegmentBytes,
		Damaged: func(err error) { g.health.Fail(fmt.Errorf("%w: %w", ErrCorrupt, err)) },
	})
	if err == nil {
		k.Keep(s)
	}
	return s, err
}

// start starts raft on the opened stores.
func (g *Group) start(m Machine) error {
	log := newBridge(g.cfg.Log)
	g.fsm = newFSM(g.cfg.Group, m, g.health)
	g.transport = transport.New(transport.Config{
		Group: g.cfg.Group, Self: g.cfg.Self, Stream: g.cfg.Stream, Resolve: g.cfg.Resolve,
		Health: g.health, Segments: g.segments, Silence: g.cfg.Timing.Heartbeat / 2, Holder: g.cfg.Holder, Log: log,
		CheckCommand:  func(entry []byte) error { _, _, err := decodeEntry(g.cfg.Group, entry); return err },
		Contradiction: func(l *raft.Log) error { return g.log.Contradiction(g.logs, l) },
		Marks:         g.cfg.Marks, HasState: g.HasState(), Beats: g.cfg.Beats,
		Proofs: g.cfg.Proofs, Commit: g.reads.committed,
	})
	t := g.cfg.Timing
	conf := raft.DefaultConfig()
	conf.LocalID = raft.ServerID(g.cfg.Self)
	conf.HeartbeatTimeout, conf.ElectionTimeout, conf.LeaderLeaseTimeout = t.Heartbeat, t.Election, t.Lease
	conf.CommitTimeout = commitTimeout
	conf.MaxAppendEntries = transport.EntriesMax
	conf.BatchApplyCh = true
	conf.ShutdownOnRemove = false // who closes the group is the node's decision
	conf.TrailingLogs = g.cfg.TrailingLogs
	conf.SnapshotInterval, conf.SnapshotThreshold = g.cfg.SnapshotInterval, g.cfg.SnapshotThreshold
	conf.Logger = log
	conf.NoLegacyTelemetry = true
	r, err := newRaft(conf, g.fsm, g.logs, g.stable, g.snapshots, g.transport)
	if err != nil {
		closed := g.transport.Close()
		g.transport.Wait()
		g.health.Close()
		g.snapshots.Close()
		return errors.Join(err, g.health.Failed(), closed, g.disk.Close())
	}
	g.raft = r
	g.log.Follow(r.CommitIndex)
	g.leader.observe(r)
	g.transport.Attach(r)
	if err := g.health.Start(g.cfg.Fatal); err != nil {
		return errors.Join(err, g.Close())
	}
	g.loops.Go(g.watch)
	g.loops.Go(func() { g.leader.run(g.stop) })
	g.loops.Go(g.reads.loop)
	g.loops.Go(g.eraser.loop)
	g.loops.Go(func() { g.snapshots.Scrub(g.cfg.Checks, g.stop) })
	g.loops.Go(commits{g}.loop)
	g.loops.Go(func() { g.fsm.checks.loop(g) })
	return nil
}

// newRaft calls raft.NewRaft. It returns an error where raft.NewRaft panics, which it does
// on some errors of its stores.
func newRaft(conf *raft.Config, f raft.FSM, l raft.LogStore, s raft.StableStore, n raft.SnapshotStore, t raft.Transport) (r *raft.Raft, err error) {
	defer func() {
		if p := recover(); p != nil {
			r, err = nil, fmt.Errorf("start raft: %v", p)
		}
	}()
	return raft.NewRaft(conf, f, l, s, n, t)
}

// watch commits a marker whenever this member becomes the leader. Owned by Open; ends
// with stop.
func (g *Group) watch() {
	for {
		select {
		case <-g.stop:
			return
		case leading := <-g.raft.LeaderCh():
			if leading {
				g.led.Add(1)
				g.mark()
			} else {
				g.health.LostLeadership()
			}
		}
	}
}

// mark commits the marker of the present term, if this member leads it.
func (g *Group) mark() {
	const pause = 10 * time.Millisecond
	entry := encodeEntry(g.cfg.Group, kindMarker, nil)
	for g.raft.State() == raft.Leader {
		err := g.raft.Apply(entry, transport.Timeout).Error()
		if !errors.Is(err, raft.ErrLeadershipTransferInProgress) && !errors.Is(err, raft.ErrEnqueueTimeout) {
			return // committed, or the leadership is gone
		}
		select {
		case <-g.stop:
			return
		case <-time.After(pause):
		}
	}
}

// enter registers a call into raft, so that Close waits for its answer. The caller ends
// the call with calls.Done.
func (g *Group) enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := closed(g); err != nil {
		return err
	}
	g.calls.Add(1)
	return nil
}

// Closed returns an error that wraps ErrClosed if g was closed or took itself out, else nil.
func Closed(g *Group) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return closed(g)
}

// closed does what Closed does. g.mu is held.
func closed(g *Group) error {
	if g.closing {
		return ErrClosed
	}
	if err := g.health.Failed(); err != nil {
		return fmt.Errorf("%w: %w", ErrClosed, err)
	}
	return nil
}

// Propose puts cmd into the log, and returns the machine's answer when this member has
// applied cmd. It returns *NotLeaderError on a member that does not lead, and ErrBusy when
// too many commands wait: then nothing was proposed. It returns ErrOutcomeUnknown when ctx
// or the leadership ends after cmd was handed to the log.
func (g *Group) Propose(ctx context.Context, cmd []byte) (_ []byte, err error) {
	ctx, running := trace.Start(ctx, trace.Stage{Name: trace.Commit, Group: g.cfg.Group})
	defer func() { running.End(err) }()
	if len(cmd) > CommandBytesMax {
		return nil, fmt.Errorf("propose %d bytes: %w", len(cmd), ErrTooLarge)
	}
	if g.raft.State() != raft.Leader {
		return nil, g.notLeader()
	}
	select {
	case g.slots <- struct{}{}:
	default:
		return nil, fmt.Errorf("propose: %w", ErrBusy)
	}
	if err := g.enter(); err != nil {
		<-g.slots
		return nil, err
	}
	entry := encodeEntry(g.cfg.Group, kindCommand, cmd)
	answer := make(chan proposal, 1)
	go func() { // owned by calls: raft answers every proposal before Close stops it
		defer g.calls.Done()
		began := time.Now()
		p := g.apply(ctx, entry)
		g.cfg.Proposed(time.Since(began), p.err)
		answer <- p
		<-g.slots
	}()
	select {
	case p := <-answer:
		return p.answer, p.err
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrOutcomeUnknown, ctx.Err())
	case <-g.health.Broken():
		return nil, fmt.Errorf("%w: %w", ErrOutcomeUnknown, ErrClosed)
	}
}

// proposal is the outcome of a command.
type proposal struct {
	answer []byte
	err    error
}

// apply hands an entry to raft and waits for its outcome.
func (g *Group) apply(ctx context.Context, entry []byte) proposal {
	var enqueue time.Duration // 0: as long as it takes
	if deadline, ok := ctx.Deadline(); ok {
		enqueue = time.Until(deadline)
	}
	if ctx.Err() != nil || enqueue < 0 {
		return proposal{err: fmt.Errorf("propose: %w", context.DeadlineExceeded)}
	}
	future := g.raft.Apply(entry, enqueue)
	if err := future.Error(); err != nil {
		return proposal{err: g.outcome(err)}
	}
	switch answer := future.Response().(type) {
	case []byte:
		return proposal{answer: answer}
	case error: // taken out before the machine could apply it
		return proposal{err: fmt.Errorf("%w: %w", ErrOutcomeUnknown, answer)}
	default:
		panic(fmt.Sprintf("bug: the state machine answered with %T", answer))
	}
}

// outcome converts raft's error for a proposal to an error of this package.
func (g *Group) outcome(err error) error {
	switch {
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return g.notLeader()
	case errors.Is(err, raft.ErrEnqueueTimeout):
		return fmt.Errorf("propose: %w", context.DeadlineExceeded)
	case errors.Is(err, raft.ErrRaftShutdown):
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, ErrClosed)
	default:
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
}

// notLeader returns a NotLeaderError with the leader that this member follows, if any.
func (g *Group) notLeader() error {
	leader, ok := g.Leader()
	if !ok || leader == g.cfg.Self {
		return &NotLeaderError{}
	}
	return &NotLeaderError{Leader: leader}
}

// WaitApplied waits until the machine here has applied all entries up to index. It returns
// an error when ctx ends or the group is closed.
func (g *Group) WaitApplied(ctx context.Context, index uint64) error {
	return g.fsm.wait(ctx, index, g.stop)
}

// Applied returns the index up to which the machine here has applied the log.
func (g *Group) Applied() uint64 { return g.fsm.applied.Load() }

// Leader returns the member that leads the group as far as this one knows.
func (g *Group) Leader() (id.Member, bool) {
	if g.health.Failed() != nil {
		return "", false
	}
	_, leader := g.raft.LeaderWithID()
	return id.Member(leader), leader != ""
}

// IsLeader reports whether this member leads the group and its disk answers. The answer
// may be out of date when it returns; ReadIndex confirms the leadership.
func (g *Group) IsLeader() bool {
	return g.raft.State() == raft.Leader && g.health.Failed() == nil && !g.health.Silent()
}

// Snapshot writes a snapshot now and cuts the log. It does nothing if no entry was ever
// applied.
func (g *Group) Snapshot() error {
	if err := g.enter(); err != nil {
		return err
	}
	defer g.calls.Done()
	err := g.raft.Snapshot().Error()
	if err != nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) {
		return fmt.Errorf("snapshot of group %d: %w", g.cfg.Group, err)
	}
	return nil
}

// Close stops the member and waits until all its goroutines have ended. Commands that were
// handed to the log get their answer first. That takes at most Timing.Lease after the last
// quorum, unless the disk hangs. Close does not hand over the leadership: call Resign
// before. It may be called again.
func (g *Group) Close() error {
	g.closeOnce.Do(func() {
		g.mu.Lock()
		g.closing = true
		g.mu.Unlock()
		close(g.stop)
		// Raft forgets its futures when it stops, so Close first waits for the calls that
		// hold one.
		g.calls.Wait()
		g.loops.Wait()
		stopped := g.raft.Shutdown()
		err := g.transport.Close() // ends what waits for other members
		err = errors.Join(err, stopped.Error())
		g.transport.Wait()
		g.asks.Wait()
		g.health.Close()
		g.fsm.checks.close()
		g.snapshots.Close()
		g.closeErr = errors.Join(err, g.disk.Close())
	})
	return g.closeErr
}
