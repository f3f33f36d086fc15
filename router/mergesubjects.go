package router

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"time"

	"facet/internal/id"
	"facet/raftfsm"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
	"facet/router/calls"
	"facet/shard"
	"facet/shard/merging"
	"facet/shard/seal"
)

const (
	// mergeRounds is the most times that a merge looks at the source's events again,
	// because other writes changed them meanwhile.
	mergeRounds = 16
	// mergePause is how long a merge waits between the copies and the removal of the source.
	// searchQuick is the longest time between a search's readings of two shards with which
	// it can't have seen the target before the copies and the source after the removal. A
	// longer search asks whether a merge has ended (settled), for which merges are kept for
	// mergeKept, longer than any request lasts.
	mergePause  = 4 * time.Second
	searchQuick = 3 * time.Second
	mergeKept   = 40 * time.Second
	// mergeTime is the longest time for one merge without a client.
	mergeTime = time.Minute
	// purposeCopy is the purpose of the ids of copied events, and of the operations that
	// add them.
	purposeCopy = "copy"
	// copiedRevisions is how many former faces of an event are looked for among the
	// target's events.
	copiedRevisions = 1024
)

// Merging asks to merge one subject into another.
type Merging struct {
	Access Access
	Write  Write
	// Target gets the events of Source, which is then removed. The note of Target stays,
	// that of Source goes.
	Target, Source id.Subject
}

// Merge merges two subjects of a gallery. The leader of the source's shard carries the merge
// out, and continues it when this call has ended. A search may find an event under both
// subjects meanwhile, never under neither. The error is NotFound for an unknown subject. A
// retry with the same Write gets the first answer.
func (r *subjectRequests) Merge(ctx context.Context, m Merging) error {
	if r.groups.Meta().Level() < metafsm.LevelSubjects {
		return &Error{
			Kind: Unavailable, RetryAfter: calls.RetryLater,
			Message: "subjects can be merged as soon as all nodes run this version: finish the upgrade, then try again",
		}
	}
	if m.Source == m.Target {
		return Errorf(InvalidRequest, "", "a subject can't be merged into itself")
	}
	g, _, err := r.enrolmentAt(ctx, m.Access, m.Target.Shard(), subjectNotFound)
	if err != nil {
		return err
	}
	home := m.Source.Shard()
	if !g.holds(home) {
		return sourceNotFound()
	}
	if err := r.room(ctx, home, g.Tenant, m.Write); err != nil {
		return err
	}
	a, err := calls.CallLeader(ctx, r.calls, shardMerge, home, shardfsm.BeginMerge{
		EventWrite: shardfsm.EventWrite{
			Gallery: g.ID, Generation: g.Generation, Op: m.Write.Operation, Request: m.Write.Request, Keyed: m.Write.Keyed,
			Subject: m.Source, Time: time.Now().UnixMilli(), Share: r.share(g.Tenant),
		},
		Target: m.Target,
	})
	switch {
	case err != nil:
		return err
	case a.Status == shardfsm.UnknownSubject:
		return sourceNotFound()
	default:
		return r.refusal(ctx, a.Status, home, g.Tenant, m.Write)
	}
}

func sourceNotFound() error {
	return Errorf(InvalidRequest, ReasonUnknownSource, "the gallery has no subject with the id in source")
}

// shardMerge begins a merge and carries it out. The status is that of BeginMerge.
var shardMerge = method[shardfsm.BeginMerge, shardfsm.StatusAnswer]{Name: "shard.merge", Run: func(ctx context.Context, r *Router, group id.Shard, c shardfsm.BeginMerge) (shardfsm.StatusAnswer, error) {
	g, _, err := r.localReplica(group)
	if err != nil {
		return shardfsm.StatusAnswer{}, err
	}
	done, err := r.merging.enter(ctx, c.Subject)
	if err != nil {
		return shardfsm.StatusAnswer{}, err
	}
	defer done()
	c.Time = onTime(c.Time)
	a, err := propose(ctx, g, shardfsm.BeginMergeOp, c)
	if err == nil && a.Status == shardfsm.Done {
		err = r.carryOut(ctx, group, c.Subject)
	}
	return a, err
}}

var shardStopReceiving = shardCommand("shard.stopReceiving", shardfsm.StopReceivingOp, nil)

// ContinueMerges continues the merges of subjects on the shards that this node leads. It
// waits for none that a client's request carries out.
func (r *subjectRequests) ContinueMerges(ctx context.Context) error {
	cluster, _ := r.groups.Meta().Cluster()
	var failed []error
	for n := range cluster.Shards {
		group := id.Shard(n + 1)
		g, here := r.groups.Group(group)
		m, open := r.groups.Shard(group)
		if !here || !open || !g.IsLeader() {
			continue
		}
		for _, under := range m.Merges().List() {
			done, free := r.merging.tryEnter(under.Source)
			if !free {
				continue
			}
			each, cancel := context.WithTimeout(ctx, mergeTime)
			err := r.carryOut(each, group, under.Source)
			cancel()
			done()
			if KindOf(err) == 0 { // not a reason to give the merge up
				failed = append(failed, err)
			}
		}
	}
	return errors.Join(failed...)
}

// carryOut carries out a merge whose source is on a shard that this node leads. An *Error means
// that the merge was given up, and all copies were removed.
func (r *subjectRequests) carryOut(ctx context.Context, group id.Shard, source id.Subject) error {
	g, _, err := r.localReplica(group)
	if err != nil {
		return err
	}
	book, err := r.mergesOf(ctx, group)
	if err != nil {
		return err
	}
	under, ok := book.Of(source)
	if !ok {
		return nil
	}
	gallery, ok := r.gallery(under.Gallery)
	if !ok || gallery.Generation != under.Generation {
		return nil // the fence of the deleted gallery drops the merge
	}
	c := copying{r, gallery, under}
	refused := c.remove(ctx, g, group)
	if refused != nil && KindOf(refused) != NotFound && KindOf(refused) != InvalidRequest {
		return refused
	}
	if refused != nil {
		if err := c.undo(ctx, group); err != nil {
			return err
		}
	}
	_, err = calls.CallLeader(ctx, r.calls, shardStopReceiving, under.Target.Shard(), shardfsm.StopReceiving{Target: under.Target, Source: source})
	if refused == nil && (err != nil || time.Since(time.UnixMilli(under.Removed)) < mergeKept) {
		return err
	}
	if err == nil {
		_, err = propose(ctx, g, shardfsm.ForgetMergeOp, shardfsm.ForgetMerge{Source: source})
	}
	return cmp.Or(err, refused)
}

// mergesOf returns the merges of a shard, with every one that was acknowledged before the call.
func (r *cluster) mergesOf(ctx context.Context, group id.Shard) (*merging.Book, error) {
	if _, err := r.leaderState(ctx, group); err != nil {
		return nil, err
	}
	m, ok := r.groups.Shard(group)
	if !ok {
		return nil, &raftfsm.NotLeaderError{}
	}
	return m.Merges(), nil
}

// copying is one merge.
type copying struct {
	*subjectRequests
	gallery enrolment
	merging.Merge
}

// remove copies the source's events and removes the source.
func (c copying) remove(ctx context.Context, g *raftfsm.Group, group id.Shard) error {
	for range mergeRounds {
		if c.Removed != 0 {
			return nil
		}
		s, err := c.leaderState(ctx, group)
		if err != nil {
			return err
		}
		events, err := s.Events(c.Gallery, c.Generation, c.Source)
		if err != nil {
			return outdated(err)
		}
		faces, err := c.copy(ctx, s, events)
		if err != nil {
			return err
		}
		select {
		case <-time.After(mergePause):
		case <-ctx.Done():
			return ctx.Err()
		}
		a, err := propose(ctx, g, shardfsm.EndMergeOp, shardfsm.EndMerge{
			Gallery: c.Gallery, Generation: c.Generation, Source: c.Source, Time: time.Now().UnixMilli(), Faces: faces,
		})
		switch {
		case err != nil:
			return err
		case a.Status == shardfsm.Moved:
			continue
		case a.Status == shardfsm.Done && len(events) > 0:
			c.tidy(ctx, named{c.gallery, shard.ExternalOf(events[0].Note)}, c.Source)
		}
		return writeError(a.Status)
	}
	return &Error{Kind: Busy, Message: "the subject is being changed by others; try again", RetryAfter: calls.RetryLater}
}

// copy adds the events to the target, and returns their faces.
func (c copying) copy(ctx context.Context, s *shard.Shard, events []shard.Active) ([]shard.FaceID, error) {
	key, err := c.dataKey(c.gallery.Gallery)
	if err != nil {
		return nil, err
	}
	has, err := c.copies(ctx, events)
	if err != nil {
		return nil, err
	}
	faces := make([]shard.FaceID, 0, len(events))
	for _, e := range events {
		f := shard.FaceID{Event: e.Event, Revision: e.Revision}
		faces = append(faces, f)
		if !has[c.id(f)] {
			if err := c.add(ctx, s, key, e); err != nil {
				return nil, err
			}
		}
		delete(has, c.id(f))
	}
	return faces, c.drop(ctx, has) // copies of faces that were replaced since
}

// copies returns those of the target's events that are copies of the source's, former faces
// included. The error is NotFound if there is no target.
func (c copying) copies(ctx context.Context, events []shard.Active) (map[id.Event]bool, error) {
	state, err := c.subject(ctx, c.gallery, subjectQuery{Subject: c.Target})
	if err != nil {
		return nil, err
	}
	if len(state.Events) == 0 {
		return nil, subjectNotFound()
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
	from := faceRef(c.gallery, c.Source, e.Event)
	from.Revision = e.Revision
	face, err := shard.OpenFace(key, from, sealed)
	if err != nil {
		return err
	}
	defer clear(face.Template)
	f := shard.FaceID{Event: e.Event, Revision: e.Revision}
	home := c.Target.Shard()
	command := shardfsm.AddEvent{
		EventWrite: shardfsm.EventWrite{
			Gallery: c.Gallery, Generation: c.Generation, Op: c.operation(f), Subject: c.Target, Event: c.id(f), Time: time.Now().UnixMilli(),
		},
		Tags: e.Tags, Sealed: shard.SealFace(key, faceRef(c.gallery, c.Target, c.id(f)), face), Source: c.Source,
	}
	a, err := c.withSlot(ctx, c.gallery, home, func(recycle bool) (registerAnswer, error) {
		command.Recycle = recycle
		return calls.CallLeader(ctx, c.calls, shardAdd, home, command)
	})
	if err != nil || a.Status == shardfsm.Conflict { // it is there; its operation was forgotten
		return err
	}
	return writeError(a.Status)
}

// drop removes copies.
func (c copying) drop(ctx context.Context, list map[id.Event]bool) error {
	for event := range list {
		var op id.Operation
		mustRandom(op[:])
		a, err := c.removeEvent(ctx, c.gallery, shardfsm.RemoveEvent{EventWrite: shardfsm.EventWrite{
			Gallery: c.Gallery, Generation: c.Generation, Op: op, Subject: c.Target, Event: event, Time: time.Now().UnixMilli(),
		}})
		if err != nil {
			return err
		}
		if err := writeError(a.Status); err != nil && KindOf(err) != NotFound {
			return err
		}
	}
	return nil
}

// undo removes all copies.
func (c copying) undo(ctx context.Context, group id.Shard) error {
	s, err := c.leaderState(ctx, group)
	if err != nil {
		return err
	}
	events, err := s.Events(c.Gallery, c.Generation, c.Source)
	if err != nil {
		return outdated(err)
	}
	has, err := c.copies(ctx, events)
	if KindOf(err) == NotFound {
		return nil // the target went with its events
	}
	if err != nil {
		return err
	}
	return c.drop(ctx, has)
}

// settled reads all shards of a gallery by read. The shards are read at different moments, perhaps
// the target's of a merge before the copies and the source's after its removal. So settled reads
// them again if it took long and a merge has ended meanwhile.
func settled[T any](ctx context.Context, r *cluster, g enrolment, read func(enrolment) ([]T, error)) ([]T, error) {
	var before []merging.Ended
	for {
		began := time.Now()
		lists, err := withFreshShards(ctx, r, g, read)
		if err != nil || time.Since(began) < searchQuick || r.groups.Meta().Level() < metafsm.LevelSubjects {
			return lists, err
		}
		ended, err := withFreshShards(ctx, r, g, func(g enrolment) ([]merging.Ended, error) {
			return calls.ScatterAny(ctx, r.calls, shardMerged, g.shards, g.ID)
		})
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(ended, func(e merging.Ended) bool { return e.Count > 0 }) || slices.Equal(ended, before) {
			return lists, nil
		}
		before = ended
	}
}

// shardMerged returns which subjects of the gallery were merged into others last.
var shardMerged = method[id.Gallery, merging.Ended]{Name: "shard.merged", Run: func(ctx context.Context, r *Router, group id.Shard, g id.Gallery) (merging.Ended, error) {
	if _, err := r.readAny(ctx, group); err != nil {
		return merging.Ended{}, err
	}
	m, ok := r.groups.Shard(group)
	if !ok {
		return merging.Ended{}, &raftfsm.NotLeaderError{}
	}
	return m.Merges().Ended(g), nil
}}

// turns lets one caller at a time in for each subject.
type turns struct {
	mu   sync.Mutex // guards busy
	busy map[id.Subject]chan struct{}
}

// tryEnter lets the caller in, until it calls done, if no other is in.
func (t *turns) tryEnter(s id.Subject) (done func(), free bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.busy[s] != nil {
		return nil, false
	}
	if t.busy == nil {
		t.busy = map[id.Subject]chan struct{}{}
	}
	left := make(chan struct{})
	t.busy[s] = left
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.busy, s)
		close(left)
	}, true
}

// enter is tryEnter, and waits until the caller is in. The error is that of ctx.
func (t *turns) enter(ctx context.Context, s id.Subject) (done func(), err error) {
	for {
		if done, free := t.tryEnter(s); free {
			return done, nil
		}
		t.mu.Lock()
		left := t.busy[s]
		t.mu.Unlock()
		if left == nil {
			continue
		}
		select {
		case <-left:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
