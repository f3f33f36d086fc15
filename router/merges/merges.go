// Package merges merges subjects. The leader of the source's shard carries a merge out.
package merges

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"time"

	"facet/internal/id"
	"facet/raftfsm"
	"facet/raftfsm/shardfsm"
	"facet/router"
	"facet/router/admission"
	"facet/router/calls"
	"facet/router/claims"
	"facet/router/cluster"
	"facet/router/lookup"
	"facet/router/subjects"
	"facet/shard"
	"facet/shard/merging"
	"facet/shard/seal"
)

const (
	// mergeRounds is the most times that a merge looks at the source's events again,
	// because other writes changed them meanwhile.
	mergeRounds = 16
	// mergePause is how long a merge waits between the copies and the removal of the source. It is longer
	// than a quick search. Any other search asks whether a merge has ended (searches.Settled), for which
	// merges are kept for mergeKept, longer than any request lasts.
	mergePause = 4 * time.Second
	mergeKept  = 40 * time.Second
	// mergePoll is how often a request looks whether its merge has ended.
	mergePoll = 200 * time.Millisecond
	// purposeCopy is the purpose of the ids of copied events, and of the operations that
	// add them.
	purposeCopy = "copy"
	// copiedRevisions is how many former faces of an event are looked for among the
	// target's events.
	copiedRevisions = 1024
)

// Merge merges two subjects of a gallery. The leader of the source's shard carries the merge
// out (CarryOut), also when this call has ended. A search may find an event under both
// subjects meanwhile, never under neither. The error is NotFound for an unknown subject. A
// retry with the same Write gets the first answer.
func (r *MergeRequests) Merge(ctx context.Context, m router.Merging) error {
	if m.Source == m.Target {
		return router.Errorf(router.InvalidRequest, "", "a subject can't be merged into itself")
	}
	g, _, err := r.cluster.At(ctx, m.Access, m.Target.Shard(), admission.SubjectNotFound)
	if err != nil {
		return err
	}
	home := m.Source.Shard()
	if !g.Holds(home) {
		return r.sourceNotFound(ctx, m)
	}
	if err := admission.Room(ctx, r.cluster, home, g.Tenant, m.Write); err != nil {
		return err
	}
	a, err := calls.CallLeader(ctx, r.cluster.Calls, shardBeginMerge, home, shardfsm.BeginMerge{
		EventWrite: shardfsm.EventWrite{
			Gallery: g.ID, Generation: g.Generation, Op: m.Write.Operation, Request: m.Write.Request, Keyed: m.Write.Keyed,
			Subject: m.Source, Time: time.Now().UnixMilli(), Share: admission.Share(r.cluster, g.Tenant),
		},
		Target: m.Target,
	})
	switch {
	case err != nil:
		return err
	case a.Status == shardfsm.UnknownSubject:
		return r.sourceNotFound(ctx, m)
	case a.Status != shardfsm.Done:
		return admission.Refusal(ctx, r.cluster, a.Status, home, g.Tenant, m.Write)
	default:
		return r.merged(ctx, g, m.Source)
	}
}

// sourceNotFound returns the error for a merge of an unknown source, which is NotFound if the
// target is unknown, too.
func (r *MergeRequests) sourceNotFound(ctx context.Context, m router.Merging) error {
	if _, err := r.subjects.Events(ctx, m.Access, m.Target); err != nil {
		return err
	}
	return router.Errorf(router.InvalidRequest, router.ReasonUnknownSource, "the gallery has no subject with the id in source")
}

// merged waits until the merge of a subject has ended.
func (r *MergeRequests) merged(ctx context.Context, g cluster.Gallery, source id.Subject) error {
	for {
		state, err := lookup.Merge(ctx, r.cluster, source)
		if err != nil {
			return err
		}
		if _, ok := r.cluster.Find(g.ID); !ok {
			return admission.WriteError(shardfsm.StaleGeneration)
		}
		if state.Ended {
			return refusedMerge(state.Refused)
		}
		if err := cluster.Pause(ctx, mergePoll); err != nil {
			return err
		}
	}
}

// refusedMerge returns the error for a merge that was given up, or nil.
func refusedMerge(why merging.Refusal) error {
	switch why {
	case 0:
		return nil
	case merging.NoTarget:
		return admission.SubjectNotFound()
	case merging.NoSlot:
		return admission.WriteError(shardfsm.NeedSlots)
	default:
		return admission.WriteError(shardfsm.Merging)
	}
}

var (
	shardBeginMerge    = cluster.ShardCommand("shard.beginMerge", shardfsm.BeginMergeOp, func(c *shardfsm.BeginMerge) *int64 { return &c.Time })
	shardStopReceiving = cluster.ShardCommand("shard.stopReceiving", shardfsm.StopReceivingOp, nil)
)

// shardIndex returns the index of the last command of a shard.
var shardIndex = cluster.MachineRead("shard.index", func(m *shardfsm.Machine, _ struct{}) (uint64, error) {
	return m.Index(), nil
})

// Merges returns the sources of the merges that are to be carried out on the shards that this
// node leads.
func (r *MergeRequests) Merges() (list []id.Subject) {
	for _, group := range r.cluster.Shards() {
		_, m, ok := cluster.LedShard(r.cluster.Groups, group)
		if !ok {
			continue
		}
		for _, of := range m.Merges().List() {
			if of.Ended == 0 || r.cluster.Clock.Now().Sub(time.UnixMilli(of.Ended)) > mergeKept {
				list = append(list, of.Source)
			}
		}
	}
	return list
}

// CarryOut carries out the merge of a source on a shard that this node leads, or forgets one
// that has ended. One caller at a time may carry a merge out.
func (r *MergeRequests) CarryOut(ctx context.Context, source id.Subject) error {
	group := source.Shard()
	g, _, err := r.cluster.LocalReplica(group)
	if err != nil {
		return err
	}
	m, err := r.cluster.LeaderMachine(ctx, group)
	if err != nil {
		return err
	}
	of, ok := m.Merges().Of(source)
	if !ok {
		return nil
	}
	gallery, ok := r.cluster.Find(of.Gallery)
	if !ok || gallery.Generation != of.Generation {
		return nil // the fence of the deleted gallery drops the merge
	}
	c := copying{r, gallery, of}
	why := of.Refused
	if of.Ended == 0 && why == 0 {
		if why, err = c.remove(ctx, g); err != nil {
			return err
		}
	}
	if of.Ended == 0 && why != 0 {
		if err := c.undo(ctx, g, why); err != nil {
			return err
		}
	}
	if _, err := calls.CallLeader(ctx, r.cluster.Calls, shardStopReceiving, of.Target.Shard(), shardfsm.StopReceiving{Target: of.Target, Source: source}); err != nil {
		return err
	}
	switch {
	case of.Ended != 0:
		_, err = cluster.Propose(ctx, g, shardfsm.ForgetMergeOp, shardfsm.ForgetMerge{Source: source})
	case why != 0:
		_, err = cluster.Propose(ctx, g, shardfsm.GiveUpMergeOp, shardfsm.GiveUpMerge{Source: source, Time: c.cluster.Clock.Now().UnixMilli(), Why: why, Undone: true})
	}
	return err
}

// copying is one merge.
type copying struct {
	*MergeRequests
	gallery cluster.Gallery
	merging.Merge
}

// remove copies the source's events and removes the source. why is the reason to give the merge
// up, or 0.
func (c copying) remove(ctx context.Context, g *raftfsm.Group) (why merging.Refusal, err error) {
	for range mergeRounds {
		m, err := c.cluster.LeaderMachine(ctx, c.Source.Shard())
		if err != nil {
			return 0, err
		}
		s := m.Shard()
		events, err := s.Events(c.Gallery, c.Generation, c.Source)
		if err != nil {
			return 0, cluster.Outdated(err)
		}
		faces, copied, err := c.copy(ctx, s, events)
		if why := refusalOf(err); why != 0 {
			return why, nil
		}
		if err == nil {
			err = cluster.Pause(ctx, mergePause)
		}
		if err != nil {
			return 0, err
		}
		a, err := cluster.Propose(ctx, g, shardfsm.EndMergeOp, shardfsm.EndMerge{
			Gallery: c.Gallery, Generation: c.Generation, Source: c.Source, Time: c.cluster.Clock.Now().UnixMilli(), Faces: faces, Copied: copied,
		})
		if err == nil && a.Status == shardfsm.Moved {
			continue
		}
		if err == nil && a.Status == shardfsm.Done && len(events) > 0 {
			c.claims.Tidy(ctx, claims.Named{Gallery: c.gallery, Name: shard.ExternalOf(events[0].Note)}, c.Source)
		}
		return 0, cmp.Or(err, admission.WriteError(a.Status))
	}
	return 0, errRestless
}

// errRestless is returned when others change the source of a merge again and again.
var errRestless = errors.New("router: the source of a merge is being changed; the merge goes on later")

// refusalOf returns why a merge is to be given up after an error, or 0 if it may be tried again.
func refusalOf(err error) merging.Refusal {
	e, ok := errors.AsType[*router.Error](err)
	switch {
	case !ok:
		return 0
	case e.Kind == router.NotFound:
		return merging.NoTarget
	case e.Reason == router.ReasonGalleryFull:
		return merging.NoSlot
	case e.Reason == router.ReasonMerging:
		return merging.TargetBusy
	default:
		return 0
	}
}

// copy adds the events to the target, and returns their faces. If the target is on another shard,
// that has all copies at the index copied of its log.
func (c copying) copy(ctx context.Context, s *shard.Shard, events []shard.Active) (faces []shard.FaceID, copied uint64, err error) {
	key, err := c.cluster.DataKey(c.gallery.Gallery)
	if err != nil {
		return nil, 0, err
	}
	has, err := c.copies(ctx, events)
	if err != nil {
		return nil, 0, err
	}
	faces = make([]shard.FaceID, 0, len(events))
	for _, e := range events {
		f := shard.FaceID{Event: e.Event, Revision: e.Revision}
		faces = append(faces, f)
		if !has[c.id(f)] {
			if err := c.add(ctx, s, key, e); err != nil {
				return nil, 0, err
			}
		}
		delete(has, c.id(f))
	}
	err = c.drop(ctx, has) // copies of faces that were replaced since
	if home := c.Target.Shard(); err == nil && home != c.Source.Shard() {
		copied, err = calls.CallLeader(ctx, c.cluster.Calls, shardIndex, home, struct{}{})
	}
	return faces, copied, err
}

// copies returns those of the target's events that are copies of the source's, former faces
// included. The error is NotFound if there is no target.
func (c copying) copies(ctx context.Context, events []shard.Active) (map[id.Event]bool, error) {
	state, err := lookup.Subject(ctx, c.cluster, c.gallery, lookup.SubjectQuery{Subject: c.Target})
	if err != nil {
		return nil, err
	}
	if len(state.Events) == 0 {
		return nil, admission.SubjectNotFound()
	}
	present := make(map[id.Event]bool, len(state.Events))
	for _, e := range state.Events {
		present[e.Event] = true
	}
	has := map[id.Event]bool{}
	for _, e := range events {
		for revision := e.Revision - min(e.Revision, copiedRevisions); revision <= e.Revision; revision++ {
			if at := c.id(shard.FaceID{Event: e.Event, Revision: revision}); present[at] {
				has[at] = true
			}
		}
	}
	return has, nil
}

// operation returns the operation that copies a face.
func (c copying) operation(f shard.FaceID) id.Operation {
	b := binary.BigEndian.AppendUint64([]byte(purposeCopy), c.Number)
	b = append(b, c.Source.UUID[:]...)
	b = append(b, c.Target.UUID[:]...)
	b = append(b, f.Event.UUID[:]...)
	hash := sha256.Sum256(binary.BigEndian.AppendUint32(b, f.Revision))
	return id.Operation(hash[:16])
}

// id returns the id of the copy of a face.
func (c copying) id(f shard.FaceID) id.Event {
	return id.Event{UUID: id.Derive(c.gallery.IDKey[:], purposeCopy, c.operation(f), c.Target.Shard())}
}

// add copies one event.
func (c copying) add(ctx context.Context, s *shard.Shard, key *seal.Key, e shard.Active) error {
	sealed, ok := s.Sealed(c.Gallery, c.Source, e.Event, e.Revision)
	if !ok {
		return nil // another write came first; EndMerge finds out
	}
	from := c.gallery.FaceRef(c.Source, e.Event)
	from.Revision = e.Revision
	face, err := shard.OpenFace(key, from, sealed)
	if err != nil {
		return err
	}
	defer clear(face.Template)
	f := shard.FaceID{Event: e.Event, Revision: e.Revision}
	home := c.Target.Shard()
	command := shardfsm.AddEvent{Register: shardfsm.Register{
		EventWrite: shardfsm.EventWrite{
			Gallery: c.Gallery, Generation: c.Generation, Op: c.operation(f), Subject: c.Target, Event: c.id(f), Time: time.Now().UnixMilli(),
		},
		Tags: e.Tags, Sealed: shard.SealFace(key, c.gallery.FaceRef(c.Target, c.id(f)), face), Source: c.Source,
		Expires: c.gallery.Ends(e),
	}}
	a, err := c.subjects.WithSlot(ctx, c.gallery, home, func(recycle bool) (subjects.RegisterAnswer, error) {
		command.Recycle = recycle
		return calls.CallLeader(ctx, c.cluster.Calls, subjects.ShardAdd, home, command)
	})
	if err != nil || a.Status == shardfsm.Conflict { // it is there; its operation was forgotten
		return err
	}
	return admission.WriteError(a.Status)
}

// drop removes copies.
func (c copying) drop(ctx context.Context, list map[id.Event]bool) error {
	for event := range list {
		var op id.Operation
		cluster.MustRandom(op[:])
		a, err := c.subjects.RemoveEvent(ctx, c.gallery, shardfsm.RemoveEvent{EventWrite: shardfsm.EventWrite{
			Gallery: c.Gallery, Generation: c.Generation, Op: op, Subject: c.Target, Event: event, Time: time.Now().UnixMilli(),
		}})
		if err != nil {
			return err
		}
		if err := admission.WriteError(a.Status); err != nil && router.KindOf(err) != router.NotFound {
			return err
		}
	}
	return nil
}

// undo removes all copies. It first commits why: a copy that was removed is not made again, so a
// later leader must not go on with the merge.
func (c copying) undo(ctx context.Context, g *raftfsm.Group, why merging.Refusal) error {
	if _, err := cluster.Propose(ctx, g, shardfsm.GiveUpMergeOp, shardfsm.GiveUpMerge{Source: c.Source, Time: c.cluster.Clock.Now().UnixMilli(), Why: why}); err != nil {
		return err
	}
	m, err := c.cluster.LeaderMachine(ctx, c.Source.Shard())
	if err != nil {
		return err
	}
	events, err := m.Shard().Events(c.Gallery, c.Generation, c.Source)
	if err != nil {
		return cluster.Outdated(err)
	}
	has, err := c.copies(ctx, events)
	if router.KindOf(err) == router.NotFound {
		return nil // the target went with its events
	}
	if err != nil {
		return err
	}
	return c.drop(ctx, has)
}

// MergeRequests serves merges of subjects.
type MergeRequests struct {
	cluster  *cluster.Cluster
	subjects *subjects.SubjectRequests
	claims   *claims.ClaimRequests
}
