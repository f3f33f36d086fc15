package router

import (
	"context"
	"errors"
	"fmt"
	"time"

	"facet/internal/id"
	"facet/internal/trace"
	"facet/raftfsm"
	"facet/raftfsm/command"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
	"facet/router/calls"
	"facet/shard"
	"facet/shard/seal"
)

// memoryRetry is the Retry-After of a registration that is refused for lack of
// memory.
const memoryRetry = time.Minute

// handlers returns the methods that a node serves to its peers.
func handlers() map[string]handler {
	table := map[string]handler{}
	calls.Add(table, metaPropose)
	calls.Add(table, metaIndex)
	calls.Add(table, metaNewKey)
	calls.Add(table, metaRevokeKey)
	calls.Add(table, groupPoint)
	calls.Add(table, shardGrant)
	calls.Add(table, shardRegister)
	calls.Add(table, shardAdd)
	calls.Add(table, shardReplace)
	calls.Add(table, shardReplaced)
	calls.Add(table, shardRemove)
	calls.Add(table, shardActivate)
	calls.Add(table, shardWithdraw)
	calls.Add(table, shardReturn)
	calls.Add(table, shardWiden)
	calls.Add(table, shardFence)
	calls.Add(table, shardPurge)
	calls.Add(table, shardEvents)
	calls.Add(table, shardSubject)
	calls.Add(table, shardHolder)
	calls.Add(table, shardClaim)
	calls.Add(table, shardBar)
	calls.Add(table, shardRefuse)
	calls.Add(table, shardNames)
	calls.Add(table, shardHolders)
	calls.Add(table, shardKnows)
	calls.Add(table, shardUnregister)
	calls.Add(table, shardBeginMerge)
	calls.Add(table, shardMergeState)
	calls.Add(table, shardStopReceiving)
	calls.Add(table, shardMerged)
	calls.Add(table, shardSearch)
	calls.Add(table, shardMatches)
	calls.Add(table, shardBest)
	calls.Add(table, shardEntries)
	calls.Add(table, shardExpiring)
	calls.Add(table, shardSpan)
	calls.Add(table, shardBefore)
	calls.Add(table, shardCounts)
	calls.Add(table, shardTaken)
	calls.Add(table, shardRoom)
	calls.Add(table, jobBegin)
	calls.Add(table, jobAdd)
	calls.Add(table, jobOpen)
	calls.Add(table, jobKnows)
	calls.Add(table, jobPage)
	calls.Add(table, jobList)
	calls.Add(table, jobTake)
	calls.Add(table, jobFinish)
	calls.Add(table, jobDrop)
	calls.Add(table, jobRedact)
	calls.Add(table, jobPut)
	calls.Add(table, caseOpen)
	calls.Add(table, caseDecide)
	calls.Add(table, caseList)
	calls.Add(table, jobReport)
	calls.Add(table, jobTakeBlock)
	calls.Add(table, shardBlocks)
	calls.Add(table, shardProbes)
	calls.Add(table, shardPairs)
	calls.Add(table, shardPresent)
	calls.Add(table, shardIndex)
	addAudit(table)
	calls.Add(table, checkCompare)
	calls.Add(table, checkEnd)
	return table
}

// localGroup returns this node's replica of group, whether or not it leads.
func (r *cluster) localGroup(group id.Shard) (*raftfsm.Group, error) {
	if g, ok := r.groups.Group(group); ok {
		return g, nil
	}
	return nil, &raftfsm.NotLeaderError{}
}

// localReplica returns this node's replica of a shard, whether or not it leads.
func (r *cluster) localReplica(group id.Shard) (*raftfsm.Group, *shard.Shard, error) {
	g, ok := r.groups.Group(group)
	m, here := r.groups.Shard(group)
	if !ok || !here {
		return nil, nil, &raftfsm.NotLeaderError{}
	}
	return g, m.Shard(), nil
}

// leaderMachine returns the state machine of a shard when it has every write that was
// acknowledged before the call. Only the leader can confirm that.
func (r *cluster) leaderMachine(ctx context.Context, group id.Shard) (*shardfsm.Machine, error) {
	g, ok := r.groups.Group(group)
	m, here := r.groups.Shard(group)
	if !ok || !here {
		return nil, &raftfsm.NotLeaderError{}
	}
	_, running := trace.Start(ctx, trace.Stage{Name: trace.Proof, Group: group})
	index, err := g.ReadIndex(ctx)
	if err == nil {
		err = g.WaitApplied(ctx, index)
	}
	running.End(err)
	if err != nil {
		return nil, err
	}
	return m, nil
}

// leaderState returns the state of leaderMachine.
func (r *cluster) leaderState(ctx context.Context, group id.Shard) (*shard.Shard, error) {
	m, err := r.leaderMachine(ctx, group)
	if err != nil {
		return nil, err
	}
	return m.Shard(), nil
}

// keyOf returns a gallery's data key on a node that answers for a shard. This
// node's replica of meta may not know the gallery yet.
func (r *cluster) keyOf(ctx context.Context, gallery id.Gallery) (*seal.Key, error) {
	look := func() (metafsm.Gallery, bool) { return r.groups.Meta().Gallery(gallery) }
	g, ok := look() // unconfirmed: the shard's fence refuses a deleted gallery
	if !ok {
		var err error
		if g, err = confirmedLookup(ctx, r, look); err != nil {
			return nil, err
		}
	}
	return r.dataKey(g)
}

// metaPropose commits an encoded command in meta and returns the encoded answer.
var metaPropose = method[[]byte, []byte]{Name: "meta.propose", Run: func(ctx context.Context, r *Router, group id.Shard, cmd []byte) ([]byte, error) {
	g, err := r.localGroup(group)
	if err != nil {
		return nil, err
	}
	a, err := g.Propose(ctx, cmd)
	if errors.Is(err, raftfsm.ErrBusy) {
		return nil, tooManyWrites()
	}
	return a, err
}}

// metaIndex returns a log index of meta. A replica that has applied it has every
// write that was acknowledged before the call.
var metaIndex = method[struct{}, uint64]{Name: "meta.index", Run: func(ctx context.Context, r *Router, group id.Shard, _ struct{}) (uint64, error) {
	g, err := r.localGroup(group)
	if err != nil {
		return 0, err
	}
	return g.ReadIndex(ctx)
}}

var shardGrant = shardCommand("shard.grant", shardfsm.GrantOp, nil)

// registerAnswer is a shard's answer to a registration. Granted is the number of
// slots that meta had granted to the shard.
type registerAnswer struct {
	shardfsm.RegisterAnswer
	Granted uint32 `cbor:"100,keyasint,omitempty"`
}

var shardRegister = method[shardfsm.Register, registerAnswer]{Name: "shard.register", Run: func(ctx context.Context, r *Router, group id.Shard, c shardfsm.Register) (registerAnswer, error) {
	c.Time = r.onTime(c.Time)
	return enrol(ctx, r, group, c.Gallery, shardfsm.RegisterOp, c)
}}

var shardAdd = method[shardfsm.AddEvent, registerAnswer]{Name: "shard.add", Run: func(ctx context.Context, r *Router, group id.Shard, c shardfsm.AddEvent) (registerAnswer, error) {
	c.Time = r.onTime(c.Time)
	return enrol(ctx, r, group, c.Gallery, shardfsm.AddEventOp, c)
}}

// enrol proposes a write that needs a slot.
func enrol[C any](ctx context.Context, r *Router, group id.Shard, gallery id.Gallery, op command.Op[C, shardfsm.RegisterAnswer], c C) (registerAnswer, error) {
	g, s, err := r.localReplica(group)
	if err != nil {
		return registerAnswer{}, err
	}
	if r.memory != nil && r.memory.Full() {
		return registerAnswer{}, &Error{Kind: Insufficient, Message: "the service has no memory or disk for more events", RetryAfter: memoryRetry}
	}
	// Read this before the proposal. A grant may come in between, and the next request
	// for slots must then ask for more than that grant, never for less.
	granted := s.Usage(gallery).Granted
	a, err := propose(ctx, g, op, c)
	return registerAnswer{a, granted}, err
}

// removedAnswer is a shard's answer to a removal. Applied is an index of its log at or after the removal's entry, and External is the name of the external id that the
// subject had before. External is a hint: a lost or late one leaves a claim for ScrubClaims.
type removedAnswer struct {
	shardfsm.UnregisterAnswer
	Applied  uint64             `cbor:"100,keyasint,omitempty"`
	External shard.ExternalName `cbor:"101,keyasint,omitzero"`
}

var shardUnregister = method[shardfsm.Unregister, removedAnswer]{Name: "shard.unregister", Run: func(ctx context.Context, r *Router, group id.Shard, c shardfsm.Unregister) (removedAnswer, error) {
	c.Time = r.onTime(c.Time)
	return remove(ctx, r, group, eventsQuery{c.Gallery, c.Generation, c.Subject}, shardfsm.UnregisterOp, c)
}}

var shardRemove = method[shardfsm.RemoveEvent, removedAnswer]{Name: "shard.remove", Run: func(ctx context.Context, r *Router, group id.Shard, c shardfsm.RemoveEvent) (removedAnswer, error) {
	c.Time = r.onTime(c.Time)
	return remove(ctx, r, group, eventsQuery{c.Gallery, c.Generation, c.Subject}, shardfsm.RemoveEventOp, c)
}}

// remove proposes a write that removes a subject or one of its events.
func remove[C any](ctx context.Context, r *Router, group id.Shard, of eventsQuery, op command.Op[C, shardfsm.UnregisterAnswer], c C) (removedAnswer, error) {
	g, s, err := r.localReplica(group)
	if err != nil {
		return removedAnswer{}, err
	}
	var name shard.ExternalName
	noted, err := s.NotesOf(of.Gallery, of.Generation, []id.Subject{of.Subject})
	if err == nil && len(noted) == 1 {
		name = shard.ExternalOf(noted[0].Note)
	}
	a, err := propose(ctx, g, op, c)
	return removedAnswer{a, g.Applied(), name}, err
}

// shardCommand returns the method that proposes op on this node's replica of a shard.
// stamp, where not nil, corrects the time of the command by this node's clock.
func shardCommand[C, A any](name string, op command.Op[C, A], stamp func(*Router, *C)) method[C, A] {
	return method[C, A]{Name: name, Run: func(ctx context.Context, r *Router, group id.Shard, c C) (A, error) {
		g, _, err := r.localReplica(group)
		if err != nil {
			var none A
			return none, err
		}
		if stamp != nil {
			stamp(r, &c)
		}
		return propose(ctx, g, op, c)
	}}
}

// shardRead returns the method that reads a shard on its leader.
func shardRead[Q, A any](name string, read func(context.Context, *Router, *shard.Shard, Q) (A, error)) method[Q, A] {
	return method[Q, A]{Name: name, Run: func(ctx context.Context, r *Router, group id.Shard, q Q) (A, error) {
		s, err := r.leaderState(ctx, group)
		return readOf(ctx, r, s, err, q, read)
	}}
}

// shardReadAny returns the method that reads a shard on any replica.
func shardReadAny[Q, A any](name string, read func(context.Context, *Router, *shard.Shard, Q) (A, error)) method[Q, A] {
	return method[Q, A]{Name: name, Run: func(ctx context.Context, r *Router, group id.Shard, q Q) (A, error) {
		s, err := r.readAny(ctx, group)
		return readOf(ctx, r, s, err, q, read)
	}}
}

func readOf[Q, A any](ctx context.Context, r *Router, s *shard.Shard, err error, q Q, read func(context.Context, *Router, *shard.Shard, Q) (A, error)) (A, error) {
	if err != nil {
		var none A
		return none, err
	}
	a, err := read(ctx, r, s, q)
	return a, outdated(err)
}

// propose commits a command and returns the answer of the state machine.
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

// shardCounts returns the number of active events of each gallery.
var shardCounts = shardRead("shard.counts", func(_ context.Context, _ *Router, s *shard.Shard, galleries []id.Gallery) ([]int, error) {
	counts := make([]int, len(galleries))
	for i, g := range galleries {
		counts[i] = int(s.Usage(g).Active)
	}
	return counts, nil
})
