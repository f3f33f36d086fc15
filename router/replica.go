package router

import (
	"context"
	"errors"
	"fmt"
	"time"

	"facet/internal/id"
	"facet/internal/mutant"
	"facet/raftfsm"
	"facet/raftfsm/command"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
	"facet/router/calls"
	"facet/shard"
	"facet/shard/seal"
)

// memoryRetry is what a client is told when a node has no memory for more events.
const memoryRetry = time.Minute

// handlers are the requests that a node takes from its peers.
func handlers() map[string]handler {
	table := jobHandlers()
	for _, add := range []func() (string, handler){
		func() (string, handler) { return calls.Serves(metaPropose) },
		func() (string, handler) { return calls.Serves(metaIndex) },
		func() (string, handler) { return calls.Serves(metaNewKey) },
		func() (string, handler) { return calls.Serves(metaRevokeKey) },
		func() (string, handler) { return calls.Serves(groupPoint) },
		func() (string, handler) { return calls.Serves(shardGrant) },
		func() (string, handler) { return calls.Serves(shardRegister) },
		func() (string, handler) { return calls.Serves(shardAdd) },
		func() (string, handler) { return calls.Serves(shardReplace) },
		func() (string, handler) { return calls.Serves(shardRemove) },
		func() (string, handler) { return calls.Serves(shardActivate) },
		func() (string, handler) { return calls.Serves(shardWithdraw) },
		func() (string, handler) { return calls.Serves(shardReturn) },
		func() (string, handler) { return calls.Serves(shardWiden) },
		func() (string, handler) { return calls.Serves(shardFence) },
		func() (string, handler) { return calls.Serves(shardPurge) },
		func() (string, handler) { return calls.Serves(shardEvents) },
		func() (string, handler) { return calls.Serves(shardKnows) },
		func() (string, handler) { return calls.Serves(shardUnregister) },
		func() (string, handler) { return calls.Serves(shardSearch) },
		func() (string, handler) { return calls.Serves(shardBest) },
		func() (string, handler) { return calls.Serves(shardEntries) },
		func() (string, handler) { return calls.Serves(shardSpan) },
		func() (string, handler) { return calls.Serves(shardBefore) },
		func() (string, handler) { return calls.Serves(shardCounts) },
	} {
		name, h := add()
		table[name] = h
	}
	return table
}

// lead gives the replica of group on this node, which may or may not lead it.
func (r *cluster) lead(group id.Shard) (*raftfsm.Group, *shard.Shard, error) {
	g, ok := r.groups.Group(group)
	m, here := r.groups.Shard(group)
	if !ok || !here {
		return nil, nil, &raftfsm.NotLeaderError{}
	}
	return g, m.Shard(), nil
}

// read gives the shard's state once it holds every write that was acknowledged
// before the call. Only the leader can say so.
func (r *cluster) read(ctx context.Context, group id.Shard) (*shard.Shard, error) {
	g, s, err := r.lead(group)
	if err != nil {
		return nil, err
	}
	if mutant.FollowerRead {
		return s, nil
	}
	index, err := g.ReadIndex(ctx)
	if err != nil {
		return nil, err
	}
	return s, g.WaitApplied(ctx, index)
}

// keyOf gives a gallery's data key on the node that answers for a shard: its
// replica of meta may not know the gallery yet.
func (r *cluster) keyOf(ctx context.Context, gallery id.Gallery) (*seal.Key, error) {
	look := func() (metafsm.Gallery, bool) { return r.groups.Meta().Gallery(gallery) }
	g, ok := look() // the shard's fence refuses what was deleted, so what is found need not be confirmed
	if !ok {
		var err error
		if g, err = confirmed(ctx, r, look); err != nil {
			return nil, err
		}
	}
	return r.dataKey(g)
}

// metaPropose commits an encoded command in meta and gives the encoded answer.
var metaPropose = method[[]byte, []byte]{Name: "meta.propose", Run: func(ctx context.Context, r *Router, group id.Shard, cmd []byte) ([]byte, error) {
	g, ok := r.groups.Group(group)
	if !ok {
		return nil, &raftfsm.NotLeaderError{}
	}
	a, err := g.Propose(ctx, cmd)
	if errors.Is(err, raftfsm.ErrBusy) {
		return nil, tooManyWrites()
	}
	return a, err
}}

// metaIndex gives the log index that a replica of meta must have applied to hold
// every write that was acknowledged before.
var metaIndex = method[struct{}, uint64]{Name: "meta.index", Run: func(ctx context.Context, r *Router, group id.Shard, _ struct{}) (uint64, error) {
	g, ok := r.groups.Group(group)
	if !ok {
		return 0, &raftfsm.NotLeaderError{}
	}
	return g.ReadIndex(ctx)
}}

var shardGrant = method[shardfsm.Grant, shardfsm.StatusAnswer]{Name: "shard.grant", Run: func(ctx context.Context, r *Router, group id.Shard, c shardfsm.Grant) (shardfsm.StatusAnswer, error) {
	g, _, err := r.lead(group)
	if err != nil {
		return shardfsm.StatusAnswer{}, err
	}
	return propose(ctx, g, shardfsm.GrantOp, c)
}}

// registerAnswer is the shard's answer, and how many slots the slice had.
type registerAnswer struct {
	shardfsm.RegisterAnswer
	Granted uint32 `cbor:"100,keyasint,omitempty"`
}

var shardRegister = method[shardfsm.Register, registerAnswer]{Name: "shard.register", Run: func(ctx context.Context, r *Router, group id.Shard, c shardfsm.Register) (registerAnswer, error) {
	c.Time = onTime(c.Time)
	return enrol(ctx, r, group, c.Gallery, shardfsm.RegisterOp, c)
}}

var shardAdd = method[shardfsm.AddEvent, registerAnswer]{Name: "shard.add", Run: func(ctx context.Context, r *Router, group id.Shard, c shardfsm.AddEvent) (registerAnswer, error) {
	c.Time = onTime(c.Time)
	return enrol(ctx, r, group, c.Gallery, shardfsm.AddEventOp, c)
}}

// enrol proposes a write that needs a slot.
func enrol[C any](ctx context.Context, r *Router, group id.Shard, gallery id.Gallery, op command.Op[C, shardfsm.RegisterAnswer], c C) (registerAnswer, error) {
	g, s, err := r.lead(group)
	if err != nil {
		return registerAnswer{}, err
	}
	if r.memory != nil && r.memory.Full() {
		return registerAnswer{}, &Error{Kind: Insufficient, Message: "the service has no memory or disk for more events", RetryAfter: memoryRetry}
	}
	// Read before the proposal: a grant that comes between must make the next
	// request for slots ask for more, never for less.
	granted := s.Slots().Usage(gallery).Granted
	a, err := propose(ctx, g, op, c)
	return registerAnswer{a, granted}, err
}

var shardUnregister = method[shardfsm.Unregister, shardfsm.UnregisterAnswer]{Name: "shard.unregister", Run: func(ctx context.Context, r *Router, group id.Shard, c shardfsm.Unregister) (shardfsm.UnregisterAnswer, error) {
	g, _, err := r.lead(group)
	if err != nil {
		return shardfsm.UnregisterAnswer{}, err
	}
	c.Time = onTime(c.Time)
	if mutant.AckBeforeCommit {
		go func() { _, _ = g.Propose(context.WithoutCancel(ctx), shardfsm.UnregisterOp.Encode(c)) }()
		return shardfsm.UnregisterAnswer{Status: shardfsm.Done}, nil
	}
	return propose(ctx, g, shardfsm.UnregisterOp, c)
}}

// propose commits a command and returns the machine's answer.
func propose[C, A any](ctx context.Context, g *raftfsm.Group, op command.Op[C, A], c C) (A, error) {
	var none A
	raw, err := g.Propose(ctx, op.Encode(c))
	if errors.Is(err, raftfsm.ErrTooLarge) {
		return none, Errorf(InvalidRequest, "", "the request is too large to be stored")
	}
	if errors.Is(err, raftfsm.ErrBusy) {
		return none, tooManyWrites()
	}
	if err != nil {
		return none, err
	}
	a, err := op.Answer(raw)
	if err != nil {
		return none, fmt.Errorf("read the state machine's answer: %w", err)
	}
	return a, nil
}

func tooManyWrites() error {
	return &Error{Kind: Busy, Message: "too many writes are in progress; try again", RetryAfter: calls.RetryBusy}
}

// shardCounts counts the active events of galleries.
var shardCounts = method[[]id.Gallery, []int]{Name: "shard.counts", Run: func(ctx context.Context, r *Router, group id.Shard, galleries []id.Gallery) ([]int, error) {
	s, err := r.read(ctx, group)
	if err != nil {
		return nil, err
	}
	counts := make([]int, len(galleries))
	for i, g := range galleries {
		counts[i] = int(s.Slots().Usage(g).Active)
	}
	return counts, nil
}}
