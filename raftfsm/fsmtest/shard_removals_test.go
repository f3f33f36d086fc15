package fsmtest_test

import (
	"facet/internal/id"
	"facet/raftfsm/shardfsm"
)

func (w *shardWorld) remove() []byte {
	of, _ := w.pick()
	if w.IntN(8) == 0 {
		of.entry.Subject = subjectID(w.IntN(w.events + 1))
	}
	if w.IntN(2) == 0 {
		c := shardfsm.Unregister{
			Gallery: of.gallery, Generation: w.generation(of.gallery), Op: id.Operation{2, byte(w.IntN(60))},
			Time: w.tick(), Subject: of.entry.Subject, Share: w.share(),
		}
		if w.IntN(20) == 0 && len(w.enrolled) > 0 {
			c.Op = w.enrolled[w.IntN(len(w.enrolled))].Op
		}
		return propose(w, shardfsm.UnregisterOp, c, w.model.unregister(c))
	}
	c := shardfsm.RemoveEvent{
		EventWrite: shardfsm.EventWrite{
			Gallery: of.gallery, Generation: w.generation(of.gallery), Op: id.Operation{4, byte(w.IntN(60))}, Request: [16]byte{byte(w.IntN(2))}, Keyed: w.IntN(2) == 0, Time: w.tick(),
			Subject: of.entry.Subject, Event: of.entry.Event, Share: w.share(),
		},
	}
	c.Heir = w.heirOf(of.gallery, of.entry.Subject)
	if w.IntN(8) == 0 {
		c.Event = eventID(w.IntN(w.events + 1))
	}
	return propose(w, shardfsm.RemoveEventOp, c, w.model.removeEvent(c))
}

// settle returns an Activate or a Withdraw of an event that is or was pending.
func (w *shardWorld) settle() []byte {
	var of modelClaim
	switch claims := w.model.claims; {
	case len(claims) > 0 && w.IntN(6) > 0:
		of = claims[w.IntN(len(claims))]
	case len(w.enrolled) > 0:
		c := w.enrolled[w.IntN(len(w.enrolled))]
		of = modelClaim{gallery: c.Gallery, subject: c.Subject, event: c.Event, op: c.Op, request: c.Request}
	default:
		of.gallery = w.gallery()
	}
	if w.IntN(3) == 0 {
		c := shardfsm.Withdraw{
			Gallery: of.gallery, Generation: w.generation(of.gallery), Subject: of.subject, Event: of.event, Time: w.tick(),
		}
		return propose(w, shardfsm.WithdrawOp, c, w.model.withdraw(c))
	}
	c := shardfsm.Activate{
		EventWrite: shardfsm.EventWrite{
			Gallery: of.gallery, Generation: w.generation(of.gallery), Op: of.op, Request: of.request, Keyed: w.IntN(2) == 0,
			Subject: of.subject, Event: of.event, Time: w.tick(), Share: w.share(),
		},
		Claim: of.number,
	}
	switch w.IntN(12) {
	case 0:
		c.Claim++
	case 1:
		c.Request[15]++
	}
	w.expectEvent(shardfsm.ActivateOp.Answer, c.Gallery, c.Op, w.model.activate(c))
	return shardfsm.ActivateOp.Encode(c)
}
