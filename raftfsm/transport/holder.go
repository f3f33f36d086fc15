package transport

import (
	"bytes"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"facet/internal/id"
)

// Two processes may run as one member, if a data directory was copied. A Holder decides which
// of them acts. Every message and every answer names its process by a token in the field Addr
// of its header, after tokenMark.

// Holder decides which process acts for a member.
type Holder interface {
	// Token names this process.
	Token() string
	// MayAct returns an error if this process may neither send nor receive in a group with
	// these voters.
	MayAct(voters func() []id.Member) error
	// Admits returns an error if token is not that of the process that acts for m.
	Admits(m id.Member, token string) error
}

// tokenMark separates a member from the token of its process.
const tokenMark = '#'

// errHolder is returned for a message of a process that does not act for its member.
var errHolder = errors.New("raftfsm: not the process that acts for the member")

// identity is the member that this process acts for.
type identity struct {
	self   []byte
	holder Holder // nil: this process acts
	raft   *atomic.Pointer[raft.Raft]
}

// address returns the field Addr of this member's headers.
func (i identity) address() []byte {
	if i.holder == nil {
		return i.self
	}
	return fmt.Appendf(nil, "%s%c%s", i.self, tokenMark, i.holder.Token())
}

// header returns the header of this member's messages.
func (i identity) header() raft.RPCHeader {
	return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: i.self, Addr: i.address()}
}

// mayAct returns an error if this process may not act for its member.
func (i identity) mayAct() error {
	if i.holder == nil {
		return nil
	}
	return i.holder.MayAct(func() []id.Member {
		r := i.raft.Load()
		if r == nil {
			return nil
		}
		var list []id.Member
		for _, s := range r.GetConfiguration().Configuration().Servers {
			if s.Suffrage == raft.Voter {
				list = append(list, id.Member(s.ID))
			}
		}
		return list
	})
}

// admit returns an error if this process may not act, or if the sender of a header may not.
// It removes the token from the header: raft compares addresses.
func (i identity) admit(h *raft.RPCHeader) error {
	if err := i.mayAct(); err != nil {
		return fmt.Errorf("%w: %w", errHolder, err)
	}
	plain, token, _ := bytes.Cut(h.Addr, []byte{tokenMark})
	h.Addr = plain
	if i.holder == nil {
		return nil
	}
	if err := i.holder.Admits(id.Member(h.ID), string(token)); err != nil {
		return fmt.Errorf("%w: %w", errHolder, err)
	}
	return nil
}

// admitRPC does the work of admit for a message.
func (i identity) admitRPC(command any) error {
	switch q := command.(type) {
	case *raft.AppendEntriesRequest:
		return i.admit(&q.RPCHeader)
	case *raft.RequestVoteRequest:
		return i.admit(&q.RPCHeader)
	case *raft.RequestPreVoteRequest:
		return i.admit(&q.RPCHeader)
	case *raft.InstallSnapshotRequest:
		return i.admit(&q.RPCHeader)
	case *raft.TimeoutNowRequest:
		return i.admit(&q.RPCHeader)
	default:
		return fmt.Errorf("%w: %T", errMalformed, command)
	}
}
