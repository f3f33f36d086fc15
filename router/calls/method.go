package calls

import (
	"context"

	"facet/internal/id"
)

// grouped is a request for several groups.
type grouped struct {
	Method  string     `cbor:"1,keyasint"`
	Groups  []id.Shard `cbor:"2,keyasint"`
	Query   []byte     `cbor:"3,keyasint"`
	Request string     `cbor:"4,keyasint,omitempty"` // as in Envelope
	Trace   string     `cbor:"5,keyasint,omitempty"` // as in Envelope
}

// groupAnswer is one group's part of the answer to a grouped request.
type groupAnswer struct {
	Answer []byte `cbor:"1,keyasint,omitempty"`
	Fault  []byte `cbor:"2,keyasint,omitempty"` // EncodeFault's
}

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
