package raftfsm

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"slices"
	"sync"
	"time"

	"facet/internal/codec"
)

// Members that have applied the same entries must have the same state. To check that, the
// leader proposes a checkpoint, a command without effect. Each member freezes its state at
// the index of the checkpoint, and hashes it beside its other work:
//
//	0xbf │ 1 │ CBOR {1: id 16}
//
// A machine skips it, and so does a release that knows no checkpoints.
var headCheck = codec.Head{Code: codec.Skippable | 0x3f, Version: 1}

const (
	// sumsKept is how many sums a member keeps.
	sumsKept = 4
	// paceBytes is how many bytes of a state are hashed between two pauses. A pause is as
	// long as the hashing before it.
	paceBytes = 1 << 20
)

// CheckID names a checkpoint.
type CheckID [16]byte

type checkCommand struct {
	ID CheckID `cbor:"1,keyasint"`
}

// Sum is the hash of a member's state at a checkpoint.
type Sum struct {
	ID     CheckID
	Index  uint64   // of the checkpoint
	Digest [32]byte // of what the machine's Frozen wrote
	Took   time.Duration
}

// checks freezes and hashes a member's states.
type checks struct {
	wake chan struct{} // capacity 1; full: there is one already

	mu      sync.Mutex // guards pending, busy and sums
	pending *frozenCheck
	busy    bool
	sums    []Sum // the oldest first
}

// frozenCheck is a state that is to be hashed.
type frozenCheck struct {
	id     CheckID
	index  uint64
	frozen Frozen
}

func newChecks() *checks { return &checks{wake: make(chan struct{}, 1)} }

// applied is called for each command that m has just applied, and freezes m if the command
// is a checkpoint. It skips a checkpoint while an earlier one is not hashed yet: a member
// without a sum is not compared.
func (c *checks) applied(index uint64, cmd []byte, m Machine) {
	if !bytes.HasPrefix(cmd, []byte{headCheck.Code, headCheck.Version}) {
		return
	}
	var k checkCommand
	if err := codec.Decode(cmd, headCheck, &k); err != nil {
		return // of a newer release
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy || c.pending != nil {
		return
	}
	frozen, err := m.Freeze()
	if err != nil {
		return
	}
	c.pending = &frozenCheck{k.ID, index, frozen}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// take returns the state to hash, or nil. The caller calls done or close afterwards.
func (c *checks) take() *frozenCheck {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.pending
	if c.pending = nil; k != nil {
		c.busy = true
	}
	return k
}

// done ends the work on a state, and keeps its sum if err is nil.
func (c *checks) done(s Sum, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = false
	if err == nil {
		c.sums = append(c.sums, s)
		c.sums = slices.Delete(c.sums, 0, max(0, len(c.sums)-sumsKept))
	}
}

// close releases the state that was not hashed. No command is applied after it.
func (c *checks) close() {
	if k := c.take(); k != nil {
		k.frozen.Release()
	}
}

// Checkpoint makes all members hash their state at one index, and returns the name of the
// checkpoint. Only the leader can. The errors are those of Propose.
func (g *Group) Checkpoint(ctx context.Context) (CheckID, error) {
	var k checkCommand
	if _, err := rand.Read(k.ID[:]); err != nil {
		return k.ID, fmt.Errorf("name a checkpoint: %w", err)
	}
	_, err := g.Propose(ctx, codec.Encode(headCheck, k))
	return k.ID, err
}

// Sum returns this member's sum at a checkpoint, when the state is hashed. A member that
// was busy with another checkpoint, or was sent a snapshot of a later state, never has it.
func (g *Group) Sum(name CheckID) (Sum, bool) {
	c := g.fsm.checks
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.sums, func(s Sum) bool { return s.ID == name })
	if i < 0 {
		return Sum{}, false
	}
	return c.sums[i], true
}

// loop hashes the frozen states of g. Owned by Open; ends with stop.
func (c *checks) loop(g *Group) {
	for {
		select {
		case <-g.stop:
			return
		case <-g.health.Broken():
			return
		case <-c.wake:
		}
		k := c.take()
		if k == nil {
			continue
		}
		s, err := k.sum(g.cfg.Checks, g.stop)
		k.frozen.Release()
		c.done(s, err)
		if err != nil && !errors.Is(err, ErrClosed) {
			g.cfg.Log.Warn("the state could not be compared with the other members", "err", err)
		}
	}
}

// sum hashes the state. If turns is not nil, it waits for a place in turns first.
func (k *frozenCheck) sum(turns chan struct{}, stop <-chan struct{}) (Sum, error) {
	if turns != nil {
		select {
		case turns <- struct{}{}:
			defer func() { <-turns }()
		case <-stop:
			return Sum{}, ErrClosed
		}
	}
	began := time.Now()
	w := &paced{hash: sha256.New(), stop: stop, began: began}
	if _, err := k.frozen.WriteTo(w); err != nil {
		return Sum{}, fmt.Errorf("hash the state at index %d: %w", k.index, err)
	}
	s := Sum{ID: k.id, Index: k.index, Took: time.Since(began)}
	w.hash.Sum(s.Digest[:0])
	return s, nil
}

// paced is a hash that rests between writes, to leave the processor to requests.
type paced struct {
	hash  hash.Hash
	stop  <-chan struct{}
	began time.Time // of the work since the last rest
	n     int       // bytes of it
}

func (p *paced) Write(b []byte) (int, error) {
	p.n += len(b)
	if p.n >= paceBytes {
		select {
		case <-p.stop:
			return 0, ErrClosed
		case <-time.After(time.Since(p.began)):
		}
		p.n, p.began = 0, time.Now()
	}
	return p.hash.Write(b)
}
