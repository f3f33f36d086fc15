package shardfsm

import (
	"facet/internal/id"
	"facet/raftfsm/operation"
	"facet/shard/claim"
)

// Claims returns the claims to external ids. Restore keeps the object.
func (m *Machine) Claims() *claim.Book { return m.claims }

// Claim changes the claims of subjects to external ids whose home this shard is (package
// claim).
type Claim struct {
	Gallery    id.Gallery     `cbor:"1,keyasint"`
	Generation uint32         `cbor:"2,keyasint"`
	Changes    []claim.Change `cbor:"3,keyasint"`
}

// ClaimAnswer answers Claim with Done or StaleGeneration. Holders are the holders of the
// names after the command.
type ClaimAnswer struct {
	Status  Status         `cbor:"1,keyasint"`
	Holders []claim.Holder `cbor:"2,keyasint,omitempty"`
}

func (c Claim) apply(m *Machine) ClaimAnswer {
	if err := m.shard.Check(c.Gallery, c.Generation); err != nil {
		return ClaimAnswer{Status: statusOf(err)}
	}
	holders, ok := m.claims.Change(c.Gallery, c.Generation, c.Changes)
	if !ok {
		return ClaimAnswer{Status: StaleGeneration}
	}
	return ClaimAnswer{Done, holders}
}

// Bar makes the shard refuse, as Barred, writes that give the subject an external id by a
// claim that is older than this command. It withdraws the subject's pending events. The
// status is Done or StaleGeneration.
type Bar struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Subject    id.Subject `cbor:"3,keyasint"`
}

func (c Bar) apply(m *Machine) StatusAnswer {
	err := m.shard.WithdrawSubject(c.Gallery, c.Generation, c.Subject)
	if err == nil {
		m.claims.Bar(c.Subject)
	}
	return StatusAnswer{statusOf(err)}
}

// Refuse makes the refusal of a Register or ReplaceEvent final, because Subject has the external
// id. The machine remembers the operation as refused for 10 minutes: a try that is still under way
// gets the answer Refused, whoever has the external id by then. Event is zero, and Keyed counts as
// false. The answer has the subject that has the external id, with Done or, again, Refused. It is
// Replayed if the operation had its effect before, or Conflict, StaleGeneration, OpsFull or OverWrites.
type Refuse struct{ EventWrite }

func (c Refuse) apply(m *Machine) RegisterAnswer {
	m.advance(c.Time)
	c.Keyed = false
	done, status := m.once(c.place(), c.name(), c.Share, RegisterOp.Code, ReplaceEventOp.Code)
	if status != 0 {
		return refusal(status, done)
	}
	m.remember(c.Gallery, c.name(), c.Share, RefuseOp.Code, c.Subject.UUID)
	return RegisterAnswer{Status: Done, Subject: c.Subject}
}

// refusal answers a write that can't be done.
func refusal(status Status, done operation.Outcome) RegisterAnswer {
	a := RegisterAnswer{Status: status}
	if status == Refused {
		a.Subject.UUID = done.IDs[0]
	}
	return a
}

// barred reports whether a write gives the subject an external id by a claim that is out of
// date.
func (m *Machine) barred(subject id.Subject, claimed uint64) bool {
	return claimed > 0 && m.claims.Barred(subject, claimed-1)
}
