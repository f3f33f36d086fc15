package backup

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"facet/internal/id"
	"facet/node/loop"
	"facet/node/replicas"
	"facet/node/transport"
	"facet/raftfsm/metafsm"
	"facet/router"
	"facet/router/calls"
)

const (
	// leaderWait is how long a backup waits for the leader of a group. It asks the members
	// again after each leaderInterval.
	leaderWait     = 30 * time.Second
	leaderInterval = 200 * time.Millisecond
	// A member at work is asked for a sign of life every lostInterval, and is lost after
	// lostAfter without one. lostMax is the most members that may be lost for one request.
	lostInterval = 2 * time.Second
	lostAfter    = 10 * time.Second
	lostMax      = 5
	// proposeTimeout is how long one attempt of a restoration's command may take.
	proposeTimeout = 10 * time.Second
	// sumsTimeout is how long the count of a restored shard's events may take.
	sumsTimeout = time.Hour
)

// copies is this cluster as the Source of a backup and the Target of a restoration.
type copies struct{ *Service }

var (
	_ Source = copies{}
	_ Target = copies{}
)

// groupOrder is a request to the leader of a group. Command belongs to methodPropose, Part
// to methodPart.
type groupOrder struct {
	Group   id.Shard `json:"group"`
	Command []byte   `json:"command,omitempty"`
	Part    Order    `json:"part,omitzero"`
}

// callLeader sends a request to the leader of a group and returns its answer. It searches
// for the leader for up to leaderWait, without the time for which members worked on the
// request. When a member is lost at work, the next leader begins again.
func (s *Service) callLeader(ctx context.Context, method string, o groupOrder) ([]byte, error) {
	var last error
	lost := 0
	for late := time.Now().Add(leaderWait); time.Now().Before(late); {
		for _, m := range s.leaderFirst(o.Group) {
			began := time.Now()
			answer, err := s.try(ctx, m, method, o)
			if err == nil {
				return answer, nil
			}
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			last = err
			took := time.Since(began)
			switch {
			case replicas.Again(err) || errors.Is(err, transport.ErrNotSent): // it does not lead, or is gone
			case !calls.Again(err) && !errors.Is(err, errLost):
				return nil, err
			case took > leaderInterval:
				s.cfg.Log.WarnContext(ctx, "a member was lost at work for a backup, and the next leader begins again", "group", o.Group, "node", m, "err", err)
				if lost++; lost == lostMax {
					return nil, fmt.Errorf("%d members of group %d were lost at work: %w", lost, o.Group, err)
				}
				late = late.Add(took)
			}
		}
		if err := loop.Pause(ctx, leaderInterval); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("group %d has no leader that answers: %w", o.Group, last)
}

// errLost is returned for a request to a member that has answered nothing for lostAfter.
var errLost = errors.New("backup: the member was lost")

// try sends a request to one member. While the request lasts, try asks the member every
// lostInterval for a sign of life. Without one for lostAfter it returns errLost.
func (s *Service) try(ctx context.Context, m id.Member, method string, o groupOrder) ([]byte, error) {
	if method == methodPart {
		o.Part.Try, o.Part.For = rand.Text(), s.cfg.Self
		s.want(o.Part.Try, true)
		defer s.want(o.Part.Try, false)
	}
	body, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("encode a request to group %d: %w", o.Group, err)
	}
	if m == s.cfg.Self {
		return s.serveCopies(ctx, method, body)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { // ends with ctx
		for heard := time.Now(); loop.Pause(ctx, lostInterval) == nil; {
			if _, err := s.cfg.Replicas.Ask(ctx, m, replicas.Query{Group: o.Group}); err == nil {
				heard = time.Now()
			} else if time.Since(heard) > lostAfter {
				cancel(errLost)
			}
		}
	})
	answer, err := s.cfg.Peers.Call(ctx, m, method, body)
	if err != nil && errors.Is(context.Cause(ctx), errLost) {
		err = errLost
	}
	cancel(nil)
	watch.Wait()
	return answer, err
}

// want records that an attempt to write a part is wanted, or is not wanted any more.
func (s *Service) want(try string, is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if is {
		s.wanted[try] = true
	} else {
		delete(s.wanted, try)
	}
}

// serveWanted answers whether an attempt of this node is still wanted. The body is the
// attempt's name.
func (s *Service) serveWanted(_ context.Context, body []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.wanted[string(body)] {
		return nil, errUnwanted
	}
	return nil, nil
}

// errUnwanted is returned for an attempt that is not wanted any more.
var errUnwanted = errors.New("backup: another leader writes the part by now")

// confirm returns an error unless the member that makes the backup still wants o. Without
// this question a leader that was cut off could replace the part that its successor has
// written.
func (s *Service) confirm(ctx context.Context, o Order) error {
	ask := func() error {
		_, err := s.serveWanted(ctx, []byte(o.Try))
		return err
	}
	if o.For != s.cfg.Self {
		ask = func() error {
			_, err := s.cfg.Peers.Call(ctx, o.For, methodWanted, []byte(o.Try))
			return err
		}
	}
	for late := time.Now().Add(lostAfter); ; {
		err := ask()
		if err == nil || !calls.Again(err) {
			return err
		}
		if time.Now().After(late) {
			return replicas.NotHere(o.Shard)
		}
		if err := loop.Pause(ctx, leaderInterval); err != nil {
			return err
		}
	}
}

// leaderFirst returns the members of a group, first the leader if this node knows it.
func (s *Service) leaderFirst(number id.Shard) []id.Member {
	list := s.cfg.Replicas.Members(number)
	if g, ok := s.cfg.Replicas.Group(number); ok {
		if leader, ok := g.Leader(); ok {
			list = append([]id.Member{leader}, slices.DeleteFunc(list, func(m id.Member) bool { return m == leader })...)
		}
	}
	return list
}

// Requests to the leader of a group.
const (
	methodPart    = "node.part"
	methodPropose = "node.propose"
	methodSums    = "node.sums"
)

// methodWanted asks the member that makes a backup whether it still wants an attempt.
const methodWanted = "node.wanted"

// serveCopies answers callLeader.
func (s *Service) serveCopies(ctx context.Context, method string, body []byte) ([]byte, error) {
	var o groupOrder
	if err := json.Unmarshal(body, &o); err != nil {
		return nil, fmt.Errorf("read a request about a group: %w", err)
	}
	group, ok := s.cfg.Replicas.Group(o.Group)
	if !ok || !group.IsLeader() {
		return nil, replicas.NotHere(o.Group)
	}
	switch method {
	case methodPropose:
		ctx, cancel := context.WithTimeout(ctx, proposeTimeout)
		defer cancel()
		answer, err := group.Propose(ctx, o.Command)
		return answer, replicas.Heal(o.Group, err)
	case methodPart:
		state, err := s.freeze(ctx, o.Group)
		if err != nil {
			return nil, replicas.Heal(o.Group, err)
		}
		part, err := WriteShard(ctx, o.Part, state, s.cfg.Master, func() error { return s.confirm(ctx, o.Part) })
		if err != nil {
			return nil, err
		}
		return json.Marshal(part)
	default:
		state, err := s.freeze(ctx, o.Group)
		if err != nil {
			return nil, replicas.Heal(o.Group, err)
		}
		sums, err := Sums(state)
		if err != nil {
			return nil, err
		}
		return json.Marshal(sums)
	}
}

// freeze returns the state of this node's replica of a group, with every write that was
// acknowledged before the call.
func (s *Service) freeze(ctx context.Context, number id.Shard) (State, error) {
	group, ok := s.cfg.Replicas.Group(number)
	if !ok {
		return nil, replicas.NotHere(number)
	}
	index, err := group.ReadIndex(ctx)
	if err == nil {
		err = group.WaitApplied(ctx, index)
	}
	if err != nil {
		return nil, err
	}
	if number == id.Meta {
		return s.cfg.Replicas.Meta().Freeze()
	}
	machine, ok := s.cfg.Replicas.Shard(number)
	if !ok {
		return nil, replicas.NotHere(number)
	}
	return machine.Freeze()
}

// askLeader calls callLeader and reads the answer's JSON into a.
func (s *Service) askLeader(ctx context.Context, method string, o groupOrder, a any) error {
	answer, err := s.callLeader(ctx, method, o)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(answer, a); err != nil {
		return fmt.Errorf("read the answer of group %d: %w", o.Group, err)
	}
	return nil
}

// Part lets the leader of a shard write its part (Source).
func (c copies) Part(ctx context.Context, o Order) (part Part, err error) {
	return part, c.askLeader(ctx, methodPart, groupOrder{Group: o.Shard, Part: o}, &part)
}

// Meta returns the state of this node's replica of meta, once it is up to date (Source).
func (c copies) Meta(ctx context.Context) (State, error) {
	if err := c.cfg.Records.SyncMeta(ctx); err != nil {
		return nil, err
	}
	return c.cfg.Replicas.Meta().Freeze()
}

// Cluster returns the cluster's record (Target).
func (c copies) Cluster(ctx context.Context) (metafsm.Cluster, error) {
	if err := c.cfg.Records.SyncMeta(ctx); err != nil {
		return metafsm.Cluster{}, err
	}
	cluster, ok := c.cfg.Replicas.Meta().Cluster()
	if !ok || c.cfg.Replicas.Meta().Shards().Epoch == 0 {
		return cluster, router.Errorf(router.Unavailable, "", "the cluster is not founded yet")
	}
	return cluster, nil
}

// Propose lets a group's leader carry out a command (Target).
func (c copies) Propose(ctx context.Context, group id.Shard, cmd []byte) ([]byte, error) {
	answer, err := c.callLeader(ctx, methodPropose, groupOrder{Group: group, Command: cmd})
	if err == nil && group == id.Meta {
		err = c.cfg.Records.SyncMeta(ctx)
	}
	return answer, err
}

// Sums returns the counts and digests of a shard's slices (Target).
func (c copies) Sums(ctx context.Context, number id.Shard) (list []Slice, err error) {
	ctx, cancel := context.WithTimeout(ctx, sumsTimeout)
	defer cancel()
	return list, c.askLeader(ctx, methodSums, groupOrder{Group: number}, &list)
}

// HasGallery reports whether the cluster has a gallery of that id or name (Target).
func (c copies) HasGallery(ctx context.Context, g metafsm.Gallery) (bool, error) {
	if err := c.cfg.Records.SyncMeta(ctx); err != nil {
		return false, err
	}
	if r, ok := c.cfg.Replicas.Meta().Restoration(); ok && !r.Done {
		return false, nil // this may be the restoration that continues
	}
	_, same := c.cfg.Replicas.Meta().Gallery(g.ID)
	_, named := c.cfg.Replicas.Meta().GalleryByName(g.Tenant, g.Name)
	return same || named, nil
}
