package shardfsm

import (
	"fmt"

	"facet/internal/codec"
)

// command is a decoded command.
type command interface {
	// apply gives the command its effect and returns the encoded answer.
	apply(m *Machine) []byte
}

// decode reads a command. skip tells that it is one that this binary does not know
// and may leave out.
func decode(b []byte) (c command, skip bool, err error) {
	m, err := codec.Split(b)
	if err != nil {
		return nil, false, err
	}
	switch m.Code {
	case headGrant.Code:
		c, err = body[Grant](m, headGrant)
	case headRegister.Code:
		c, err = body[Register](m, headRegister)
	case headUnregister.Code:
		c, err = body[Unregister](m, headUnregister)
	case headAddEvent.Code:
		c, err = body[AddEvent](m, headAddEvent)
	case headReplaceEvent.Code:
		c, err = body[ReplaceEvent](m, headReplaceEvent)
	case headRemoveEvent.Code:
		c, err = body[RemoveEvent](m, headRemoveEvent)
	case headReturnSlots.Code:
		c, err = body[ReturnSlots](m, headReturnSlots)
	case headFence.Code:
		c, err = body[Fence](m, headFence)
	case headPurge.Code:
		c, err = body[Purge](m, headPurge)
	case headActivate.Code:
		c, err = body[Activate](m, headActivate)
	case headWithdraw.Code:
		c, err = body[Withdraw](m, headWithdraw)
	case headWiden.Code:
		c, err = body[Widen](m, headWiden)
	case headLoad.Code:
		c, err = body[Load](m, headLoad)
	default:
		var known bool
		if c, known, err = decodeJob(m); known {
			break
		}
		if m.Code&codec.Skippable != 0 {
			return nil, true, nil
		}
		err = fmt.Errorf("%w: unknown command %d", codec.ErrMalformed, m.Code)
	}
	if err != nil {
		return nil, false, err
	}
	return c, false, nil
}

func body[T any](m codec.Message, h codec.Head) (T, error) {
	var v T
	err := m.Decode(h, &v)
	return v, err
}
