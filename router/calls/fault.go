package calls

import (
	"context"
	"errors"
	"fmt"
	"time"

	"facet/internal/id"
	"facet/raftfsm"
)

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
