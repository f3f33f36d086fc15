package router

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"facet/engine"
	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
	"facet/shard"
	"facet/shard/seal"
)

const (
	// grantMax and grantShare bound how many slots a shard asks for at once: a
	// share of what is free for each of the gallery's shards.
	grantMax   = 4096
	grantShare = 2
	// grantRounds bounds how often one registration asks for slots: others may
	// take what it was granted.
	grantRounds = 16
	// clockSkewMax is how far a proposed time may be off the leader's own.
	clockSkewMax = 5 * time.Second
)

// Purposes of derived ids. They are part of what a retry must find again.
const (
	purposeSubject = "subject"
	purposeEvent   = "event"
)

// Register enrols the one face of an image as a new subject with one event. A
// retry with the same Write gets the first answer.
func (r *Router) Register(ctx context.Context, reg Registration) (Registered, error) {
	g, app, err := r.enrolment(reg.Access)
	if err != nil {
		return Registered{}, err
	}
	tags, err := g.tags(reg.Tags)
	if err != nil {
		return Registered{}, err
	}
	face, err := r.single(ctx, reg.Image, app.MinimumQuality)
	if err != nil {
		return Registered{}, err
	}
	key, err := r.dataKey(g.Gallery)
	if err != nil {
		return Registered{}, err
	}
	op := reg.Write.Operation
	home := g.shards[metafsm.Jump(binary.BigEndian.Uint64(op[:8]), len(g.shards))]
	subject := id.Subject{UUID: id.Derive(g.IDKey[:], purposeSubject, op, home)}
	event := id.Event{UUID: id.Derive(g.IDKey[:], purposeEvent, op, home)}
	answer, err := r.enrol(ctx, g, home, shardfsm.Register{
		Gallery: g.ID, Generation: g.Generation,
		Op: op, Request: reg.Write.Request, Keyed: reg.Write.Keyed,
		Subject: subject, Event: event, Time: time.Now().UnixMilli(), Tags: tags,
		Sealed: shard.SealFace(key, faceRef(g, subject, event), face),
	})
	if err != nil {
		return Registered{}, err
	}
	return r.registered(g, key, answer, face)
}

// registered makes the client's answer of the shard's. What was stored first
// counts: a retry gets the first answer's attributes as long as the event lives.
func (r *Router) registered(g enrolment, key *seal.Key, a registerAnswer, face engine.Face) (Registered, error) {
	out := Registered{Subject: a.Subject, Event: a.Event, Attributes: face.Attributes}
	if len(a.Sealed) > 0 {
		first, err := shard.OpenFace(key, faceRef(g, a.Subject, a.Event), a.Sealed)
		if err != nil {
			return Registered{}, fmt.Errorf("open a registered face: %w", err)
		}
		out.Attributes = first.Attributes
	}
	return out, nil
}

func faceRef(g enrolment, subject id.Subject, event id.Event) shard.FaceRef {
	return shard.FaceRef{Gallery: g.ID, Generation: g.Generation, Subject: subject, Event: event}
}

// enrol has the shard take the event, and finds slots for it: the shard's own
// grant first, then what meta still has, then the oldest deleted entry.
func (r *Router) enrol(ctx context.Context, g enrolment, home id.Shard, cmd shardfsm.Register) (registerAnswer, error) {
	for range grantRounds {
		a, err := ask(ctx, r, shardRegister, home, cmd)
		if err != nil {
			return a, err
		}
		switch a.Status {
		case shardfsm.Done, shardfsm.Replayed:
			return a, nil
		case shardfsm.Conflict:
			return a, keyReused()
		case shardfsm.OpsFull:
			return a, operationsFull()
		case shardfsm.StaleGeneration:
			return a, Errorf(Forbidden, "", "Forbidden")
		case shardfsm.NeedSlots:
		default:
			return a, fmt.Errorf("register: the shard answered status %d", a.Status)
		}
		if cmd.Recycle {
			return a, Errorf(InvalidRequest, ReasonGalleryFull, "the gallery is full")
		}
		if cmd.Recycle, err = r.noMoreSlots(ctx, g, home, a.Granted); err != nil {
			return a, err
		}
	}
	return registerAnswer{}, &Error{Kind: Busy, Message: "the gallery's last slots are contended; try again", RetryAfter: retryAfter}
}

// noMoreSlots asks meta for slots beyond the granted ones and hands them to the
// shard; it tells whether meta had none. Both steps may be repeated: meta answers
// a total, and the shard keeps the larger of two.
func (r *Router) noMoreSlots(ctx context.Context, g enrolment, home id.Shard, granted uint32) (bool, error) {
	want := g.Size
	if n := len(g.shards); n > 1 {
		free := g.Size - r.granted(g.ID)
		want = uint32(min(max(1, int(free)/(grantShare*n)), grantMax))
	}
	a, err := proposeMeta(ctx, r, metafsm.Grant{
		Gallery: g.ID, Generation: g.Generation, Shard: home, Have: granted, Want: want,
	}, metafsm.ParseGrantAnswer)
	if err != nil {
		return false, err
	}
	if a.Status != metafsm.Done {
		return false, Errorf(Forbidden, "", "Forbidden")
	}
	if a.Total <= granted {
		return true, nil
	}
	_, err = ask(ctx, r, shardGrant, home, shardfsm.Grant{Gallery: g.ID, Generation: g.Generation, Total: a.Total})
	return false, err
}

// granted counts the slots of a gallery that meta has given out, as far as this
// node knows.
func (r *Router) granted(g id.Gallery) uint32 {
	var sum uint32
	for _, s := range r.groups.Meta().Grants(g) {
		sum += s.Total
	}
	return sum
}

// Unregister removes a subject and its events. An unknown one is NotFound.
func (r *Router) Unregister(ctx context.Context, access Access, subject id.Subject) error {
	g, _, err := r.enrolment(access)
	if err != nil {
		return err
	}
	if !g.holds(subject.Shard()) {
		return subjectNotFound()
	}
	// The operation is this call's own: a retry within it finds its outcome, and a
	// client's second request is a second operation.
	var op id.Operation
	mustRandom(op[:])
	a, err := ask(ctx, r, shardUnregister, subject.Shard(), shardfsm.Unregister{
		Gallery: g.ID, Generation: g.Generation, Op: op, Time: time.Now().UnixMilli(), Subject: subject,
	})
	if err != nil {
		return err
	}
	switch a.Status {
	case shardfsm.Done:
		return nil
	case shardfsm.UnknownSubject:
		return subjectNotFound()
	case shardfsm.OpsFull:
		return operationsFull()
	default:
		return fmt.Errorf("unregister: the shard answered status %d", a.Status)
	}
}

func operationsFull() error {
	return &Error{Kind: Busy, Message: "too many recent writes are remembered; try again later", RetryAfter: time.Minute}
}

func keyReused() error {
	return Errorf(InvalidRequest, ReasonKeyReused, "the idempotency key was used with another body")
}

// onTime replaces a proposed time that is more than clockSkewMax off this node's:
// one wrong clock must not move a shard's time.
func onTime(proposed int64) int64 {
	now := time.Now()
	if off := now.Sub(time.UnixMilli(proposed)).Abs(); off > clockSkewMax {
		return now.UnixMilli()
	}
	return proposed
}
