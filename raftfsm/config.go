package raftfsm

import (
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"time"

	"facet/internal/id"
	"facet/raftfsm/transport"
)

// The limits of a group, and the defaults of its configuration.
const (
	// EntryBytesMax is the most bytes that an entry of the log may have, header included.
	EntryBytesMax = 256 << 10
	// CommandBytesMax is the most bytes that a command may have.
	CommandBytesMax = EntryBytesMax - entryHeaderBytes
	// EraseWithinDefault is the default of Config.EraseWithin.
	EraseWithinDefault = 24 * time.Hour

	timeMin                  = 5 * time.Millisecond // of Timing, by hashicorp/raft
	heartbeatDefault         = 1500 * time.Millisecond
	electionDefault          = 1500 * time.Millisecond
	leaseDefault             = 1500 * time.Millisecond
	stallDefault             = 1500 * time.Millisecond
	stallFatalDefault        = 30 * time.Second
	snapshotThresholdDefault = 4096
	trailingLogsDefault      = 2048
	snapshotIntervalDefault  = 30 * time.Second

	// proposalsMax is the most commands of one group that may wait for their answer.
	// One more is refused at once (ErrBusy).
	proposalsMax = 1024
	// readsMax is the most callers of ReadIndex that may wait for the next round.
	readsMax = 4096
	// commitTick is how long after a commit its index is compared with the one on the disk. The
	// one on the disk is at most two ticks old.
	commitTick = 500 * time.Millisecond
	// commitTimeout is how long a leader of hashicorp/raft that writes nothing waits, at the
	// least, before it sends its followers an append without entries. They learn of a commit
	// much earlier (commits.go).
	commitTimeout = 5 * time.Second
	// logCacheEntries is how many of the newest entries are kept in memory.
	logCacheEntries = 128
)

// Server is one member of a group.
type Server struct {
	Member id.Member
	Voter  bool // false: receives the log, but neither votes nor counts for a commit
}

// Holder decides which process acts for a member.
type Holder = transport.Holder

// Beats sends the heartbeats of a node's groups together (transport.Beats).
type Beats = transport.Beats

// BeatsQuestion is a message of Beats.
type BeatsQuestion = transport.BeatsQuestion

// BeatsAnswer answers a BeatsQuestion.
type BeatsAnswer = transport.BeatsAnswer

// NewBeats returns Beats for groups with this timing that send their questions by ask. Close it
// after all groups.
func NewBeats(ask transport.Ask, t Timing) *Beats {
	return transport.NewBeats(ask, Config{Timing: t}.withDefaults().Timing.Heartbeat/3)
}

// Proofs sends the proofs of leadership of a node's groups together (transport.Proofs).
type Proofs = transport.Proofs

// ProofsQuestion is a message of Proofs.
type ProofsQuestion = transport.ProofsQuestion

// ProofsAnswer answers a ProofsQuestion.
type ProofsAnswer = transport.ProofsAnswer

// NewProofs returns Proofs that send their questions by ask. Close it after all groups.
func NewProofs(ask transport.Ask) *Proofs { return transport.NewProofs(ask) }

// Timing holds the times of the protocol. Zero values take the defaults, which suit round
// trips of up to half a second and processors that are short (docs/decisions/0024-timing.md).
// Election is at least Heartbeat. Open stretches the times by up to a tenth, differently for
// each group and member, so that many groups do not act at once.
type Timing struct {
	// Without a leader's word for Heartbeat, a follower stands for election; 1.5 s. After
	// half of that it asks the leader and the other voters whether the leader is gone.
	Heartbeat time.Duration
	Election  time.Duration // how long one election may take; 1.5 s
	Lease     time.Duration // without a quorum's word for this long, a leader steps down; 1.5 s, at most Heartbeat
	Stall     time.Duration // when the disk has not answered for this long, a leader falls silent; 1.5 s
	// StallFatal is how long a disk write may hang before the group stops itself
	// through Fatal; 30 s.
	StallFatal time.Duration
}

// Config configures one member of a group.
type Config struct {
	Group id.Shard  // the number of the group; 0 is meta
	Self  id.Member // this member
	Dir   string    // the group's own folder; made when missing, unless Prepared

	// Prepared is set when Prepare was called for Dir, by this process or an earlier one.
	// Open then fails with ErrGone if Dir has no log.
	Prepared bool

	Stream  transport.StreamLayer           // closed by Group.Close
	Resolve func(id.Member) (string, error) // the present address of a member; must not block
	// Holder decides which process acts for a member. nil: one process runs for each.
	Holder Holder
	Log    *slog.Logger

	Timing            Timing
	SnapshotThreshold uint64        // entries since the last snapshot before the next; 4,096
	TrailingLogs      uint64        // entries kept behind a snapshot for members that lag; 2,048
	SnapshotInterval  time.Duration // how often raft compares the log with the threshold; 30 s

	// EraseWithin is how long data that a command removed from the machine may stay in
	// Dir, while the group runs and has a leader; 24 h.
	EraseWithin time.Duration
	// SegmentBytes is the approximate size of the files of a Keeper; 64 MiB.
	SegmentBytes int64

	// Checks limits how many members of this process hash their state (Checkpoint) or verify a
	// segment at a time: one for each free place in the channel. nil sets no limit.
	Checks chan struct{}

	// Marks keeps what members have acknowledged. With it, the member stays out of
	// elections until Admit. If it has state, it receives nothing until Receive. nil keeps
	// nothing.
	Marks Marks

	// Beats sends heartbeats together with those of the process's other groups. nil sends
	// each by itself.
	Beats *Beats
	// Proofs sends proofs of leadership together with those of the process's other groups. nil
	// sends each by itself.
	Proofs *Proofs

	// Proposed is called after each command that was handed to the log, with the time it
	// took and the reason if it got no answer. It must return quickly. nil is allowed.
	Proposed func(took time.Duration, err error)

	// Fatal is called at most once, on a goroutine of its own, when the group has to
	// stop: a write of the log failed, an entry or a snapshot has a wrong checksum, or
	// the disk has hung for Timing.StallFatal. From then on the group neither sends,
	// receives nor applies anything. Close it, or end the process.
	Fatal func(error)
}

// check returns an error for a configuration that can't work.
func (c *Config) check() error {
	switch {
	case c.Self == "":
		return errors.New("open group: no member name")
	case c.Dir == "":
		return errors.New("open group: no directory")
	case c.Stream == nil || c.Resolve == nil:
		return errors.New("open group: no streams")
	}
	if err := c.Timing.Check(); err != nil {
		return fmt.Errorf("open group: %w", err)
	}
	return nil
}

// Check returns an error for times that can't work together.
func (t Timing) Check() error {
	t = Config{Timing: t}.withDefaults().Timing
	switch {
	case min(t.Heartbeat, t.Election, t.Lease, t.Stall) < timeMin:
		return fmt.Errorf("a time of %s is shorter than %s", min(t.Heartbeat, t.Election, t.Lease, t.Stall), timeMin)
	case t.Lease > t.Heartbeat:
		return fmt.Errorf("lease %s is longer than heartbeat %s", t.Lease, t.Heartbeat)
	case t.Election < t.Heartbeat:
		return fmt.Errorf("election %s is shorter than heartbeat %s", t.Election, t.Heartbeat)
	}
	return nil
}

// withDefaults returns c with the defaults in place of zero values.
func (c Config) withDefaults() Config {
	if c.Timing.Election > 0 {
		setDefault(&c.Timing.Heartbeat, min(heartbeatDefault, c.Timing.Election))
	}
	setDefault(&c.Timing.Heartbeat, heartbeatDefault)
	setDefault(&c.Timing.Election, max(electionDefault, c.Timing.Heartbeat))
	setDefault(&c.Timing.Lease, min(leaseDefault, c.Timing.Heartbeat))
	setDefault(&c.Timing.Stall, stallDefault)
	setDefault(&c.Timing.StallFatal, stallFatalDefault)
	setDefault(&c.SnapshotThreshold, snapshotThresholdDefault)
	setDefault(&c.TrailingLogs, trailingLogsDefault)
	setDefault(&c.SnapshotInterval, snapshotIntervalDefault)
	setDefault(&c.EraseWithin, EraseWithinDefault)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Proposed == nil {
		c.Proposed = func(time.Duration, error) {}
	}
	if c.Fatal == nil {
		c.Fatal = func(error) {}
	}
	return c
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// jittered returns the times stretched by 0 to 10 %. The factor is a hash of group and
// member, so that it is the same after a restart.
func (t Timing) jittered(group id.Shard, self id.Member) Timing {
	h := fnv.New32a()
	fmt.Fprintf(h, "%d %s", group, self)
	stretch := func(d time.Duration) time.Duration { return d + d*time.Duration(h.Sum32()%1000)/10000 }
	t.Heartbeat, t.Election, t.Lease = stretch(t.Heartbeat), stretch(t.Election), stretch(t.Lease)
	return t
}
