package calls

import (
	"context"
	"errors"
	"fmt"
	"time"

	"facet/internal/id"
	"facet/internal/requestlog"
	"facet/internal/trace"
	"facet/raftfsm"
)

// errUnreachable is returned when a peer gave no answer. It may or may not have
// carried out the request.
var errUnreachable = errors.New("router: peer did not answer")

// Method is one request between nodes. Name is its name on the wire. Run carries it
// out with host, a part of a node that has a replica of the group. It returns a *raftfsm.NotLeaderError
// where only the leader may answer and the node is not the leader.
type Method[H, Q, A any] struct {
	Name string
	Run  func(ctx context.Context, host H, group id.Shard, q Q) (A, error)
}

// NewMethod returns the method with a name that run carries out.
func NewMethod[H, Q, A any](name string, run func(ctx context.Context, host H, group id.Shard, q Q) (A, error)) Method[H, Q, A] {
	return Method[H, Q, A]{name, run}
}

// Envelope is a request between nodes.
type Envelope[Q any] struct {
	Group id.Shard `cbor:"1,keyasint"`
	Query Q        `cbor:"2,keyasint"`
	// Request is the id of the client's request, for logs.
	Request string `cbor:"3,keyasint,omitempty"`
	// Trace is the traceparent of the client's request, if it is sampled.
	Trace string `cbor:"4,keyasint,omitempty"`
}

// Open decodes a request between nodes.
func Open[Q any](body []byte) (e Envelope[Q], err error) {
	err = wireDec.Unmarshal(body, &e)
	return e, err
}

// handler carries out one method for a peer.
type handler interface {
	// one carries it out for the group of an Envelope.
	one(ctx context.Context, c *Caller, body []byte) ([]byte, error)
	// many carries it out for several groups at once.
	many(ctx context.Context, c *Caller, q grouped) ([]groupAnswer, error)
}

// served is the handler of a method, and the host that carries it out on this node.
type served[H, Q, A any] struct {
	Method[H, Q, A]
	host H
}

// Add makes c carry out m with host on this node, for itself and for peers. All methods are
// added before the first call.
func Add[H, Q, A any](c *Caller, host H, m Method[H, Q, A]) {
	c.methods[m.Name] = served[H, Q, A]{m, host}
}

func (m served[H, Q, A]) one(ctx context.Context, c *Caller, body []byte) ([]byte, error) {
	e, err := Open[Q](body)
	if err != nil {
		return nil, fmt.Errorf("read %s request: %w", m.Name, err)
	}
	ctx, end := c.begin(ctx, m.Name, e.Request, e.Trace)
	a, err := m.here(ctx, c, e.Group, e.Query)
	end(e.Group, err)
	if err != nil {
		return nil, err
	}
	return wireEnc.Marshal(a)
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

// CallMember carries out m on another node.
func CallMember[H, Q, A any](ctx context.Context, c *Caller, m Method[H, Q, A], group id.Shard, to id.Member, q Q) (A, error) {
	var a A
	body, err := wireEnc.Marshal(Envelope[Q]{group, q, requestlog.ID(ctx), trace.Parent(ctx)})
	if err != nil {
		return a, fmt.Errorf("encode %s request: %w", m.Name, err)
	}
	answer, err := c.peers.Call(ctx, to, m.Name, body)
	if err != nil {
		return a, err
	}
	if err := wireDec.Unmarshal(answer, &a); err != nil {
		return a, fmt.Errorf("read %s answer: %w", m.Name, err)
	}
	return a, nil
}

// Serve carries out a peer's request. EncodeFault turns its error into bytes for
// the peer.
func (c *Caller) Serve(ctx context.Context, name string, body []byte) ([]byte, error) {
	if name == methodGrouped {
		return c.serveGrouped(ctx, body)
	}
	h, ok := c.methods[name]
	if !ok {
		return nil, fmt.Errorf("router: unknown method %q", name)
	}
	return h.one(ctx, c, body)
}

// fault is an error on the wire.
type fault struct {
	Code    faultCode     `cbor:"1,keyasint"`
	Leader  id.Member     `cbor:"2,keyasint,omitempty"`
	Message string        `cbor:"3,keyasint,omitempty"`
	Kind    Kind          `cbor:"4,keyasint,omitempty"`
	Reason  string        `cbor:"5,keyasint,omitempty"`
	Retry   time.Duration `cbor:"6,keyasint,omitempty"`
}

type faultCode uint8

// The numbers travel between nodes of different versions.
const (
	faultOther     faultCode = 0
	faultNotLeader faultCode = 1
	faultUnknown   faultCode = 2 // the outcome of a proposal is unknown
	faultClosed    faultCode = 3
	faultKind      faultCode = 4 // an *Error
	faultTimeout   faultCode = 5 // the peer had no answer of another node, or no time left
)

// EncodeFault encodes err for another node's DecodeFault.
func EncodeFault(err error) []byte {
	f := fault{Message: err.Error()}
	if e, ok := errors.AsType[*raftfsm.NotLeaderError](err); ok {
		f.Code, f.Leader = faultNotLeader, e.Leader
	} else if e, ok := errors.AsType[*Error](err); ok {
		f.Code, f.Kind, f.Reason, f.Retry = faultKind, e.Kind, e.Reason, e.RetryAfter
	} else if errors.Is(err, raftfsm.ErrOutcomeUnknown) {
		f.Code = faultUnknown
	} else if errors.Is(err, raftfsm.ErrClosed) {
		f.Code = faultClosed
	} else if noAnswer(err) {
		f.Code = faultTimeout
	}
	body, err := wireEnc.Marshal(f)
	if err != nil {
		panic(fmt.Sprintf("bug: encode fault: %v", err))
	}
	return body
}

// noAnswer reports whether the peer itself waited for an answer of another node in vain.
func noAnswer(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) ||
		errors.Is(err, errSlow) || errors.Is(err, errUnreachable)
}

// DecodeFault returns the error of a peer.
func DecodeFault(body []byte) error {
	var f fault
	if err := wireDec.Unmarshal(body, &f); err != nil {
		return fmt.Errorf("read a peer's error: %w", err)
	}
	switch f.Code {
	case faultNotLeader:
		return &raftfsm.NotLeaderError{Leader: f.Leader}
	case faultUnknown:
		return fmt.Errorf("peer: %s: %w", f.Message, raftfsm.ErrOutcomeUnknown)
	case faultClosed:
		return fmt.Errorf("peer: %w", raftfsm.ErrClosed)
	case faultKind:
		return &Error{Kind: f.Kind, Reason: f.Reason, Message: f.Message, RetryAfter: f.Retry}
	case faultTimeout:
		return errSlow
	default:
		return fmt.Errorf("peer: %s", f.Message)
	}
}

// Unreachable wraps the error of a call without an answer, so that the caller tries
// again.
func Unreachable(err error) error { return fmt.Errorf("%w: %w", errUnreachable, err) }
