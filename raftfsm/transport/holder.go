package transport

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"

	"facet/internal/id"
)

// Two processes may run as one member, if a data directory was copied. A Holder decides which
// of them acts. Every message and every answer names its process by a token in the field Addr
// of its header, after tokenMark. Members of older releases send none and ignore it.

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

// address returns the field Addr of this member's headers.
func (t *Transport) address() []byte {
	if t.holder == nil {
		return t.header.ID
	}
	return fmt.Appendf(nil, "%s%c%s", t.header.ID, tokenMark, t.holder.Token())
}

// ownHeader returns the header of this member's messages.
func (t *Transport) ownHeader() raft.RPCHeader {
	h := t.header
	h.Addr = t.address()
	return h
}

// mayAct returns an error if this process may not act for its member.
func (t *Transport) mayAct() error {
	if t.holder == nil {
		return nil
	}
	return t.holder.MayAct(func() []id.Member {
		r := t.raft.Load()
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
func (t *Transport) admit(h *raft.RPCHeader) error {
	if err := t.mayAct(); err != nil {
		return fmt.Errorf("%w: %w", errHolder, err)
	}
	plain, token, _ := bytes.Cut(h.Addr, []byte{tokenMark})
	h.Addr = plain
	if t.holder == nil {
		return nil
	}
	if err := t.holder.Admits(id.Member(h.ID), string(token)); err != nil {
		return fmt.Errorf("%w: %w", errHolder, err)
	}
	return nil
}

// admitRPC does the work of admit for a message.
func (t *Transport) admitRPC(command any) error {
	switch q := command.(type) {
	case *raft.AppendEntriesRequest:
		return t.admit(&q.RPCHeader)
	case *raft.RequestVoteRequest:
		return t.admit(&q.RPCHeader)
	case *raft.RequestPreVoteRequest:
		return t.admit(&q.RPCHeader)
	case *raft.InstallSnapshotRequest:
		return t.admit(&q.RPCHeader)
	case *raft.TimeoutNowRequest:
		return t.admit(&q.RPCHeader)
	default:
		return fmt.Errorf("%w: %T", errMalformed, command)
	}
}
