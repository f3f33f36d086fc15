package calls

import (
	"context"
	"fmt"
	"time"

	"facet/internal/id"
	"facet/internal/requestlog"
	"facet/internal/trace"
	"facet/raftfsm"
)

// here carries out m on this node. If its replica is out of service, perhaps since m found a file that
// can't be read, the error wraps raftfsm.ErrClosed: another member may answer.
func (m served[H, Q, A]) here(ctx context.Context, c *Caller, group id.Shard, q Q) (A, error) {
	g, here := c.groups.Group(group)
	a, err := m.run(ctx, m.host, group, q)
	if err != nil {
		err = c.outOfService(group, g, here, err)
	}
	return a, err
}

// outOfService returns err, marked as raftfsm.ErrClosed if this node's replica g of a group is out of service.
func (c *Caller) outOfService(group id.Shard, g *raftfsm.Group, here bool, err error) error {
	if leader, again := retryable(err); leader != "" || KindOf(err) != 0 || !here && !again {
		return err
	}
	if here && raftfsm.Closed(g) != nil || c.groups.Out(group) {
		err = fmt.Errorf("%w: %w", raftfsm.ErrClosed, err)
	}
	return err
}

// served is the handler of a method, and the host that carries it out on this node.
type served[H, Q, A any] struct {
	name string
	run  func(ctx context.Context, host H, group id.Shard, q Q) (A, error)
	host H
}

// Of is a method that works with a host.
type Of[H any] interface {
	add(c *Caller, host H)
}

// Add makes c carry out methods with host on this node, for itself and for peers. All methods
// are added before the first call.
func Add[H any](c *Caller, host H, methods ...Of[H]) {
	for _, m := range methods {
		m.add(c, host)
	}
}

func (m Method[H, Q, A]) add(c *Caller, host H) {
	c.methods[m.Name] = served[H, Q, A]{m.Name, m.Run, host}
}

// begin starts the stages of a peer's request. The caller calls end with its first group.
func (c *Caller) begin(ctx context.Context, method, request, parent string) (_ context.Context, end func(id.Shard, error)) {
	began := time.Now()
	ctx, stages := trace.New(requestlog.With(ctx, request))
	if parent != "" {
		ctx = c.tracer.Sample(ctx, trace.Beginning{Name: method, ID: request, Parent: parent, Peer: true, At: began})
	}
	return ctx, func(group id.Shard, err error) {
		stages.End(0, err != nil)
		c.logAnswered(ctx, method, group, time.Since(began), stages, err)
	}
}
