package backup

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"facet/internal/id"
	"facet/node/replicas"
	"facet/raftfsm/metafsm"
	"facet/router"
)

const (
	// leaderWait is how long a backup waits for the leader of a group, leaderPause how
	// often it looks.
	leaderWait  = 30 * time.Second
	leaderPause = 200 * time.Millisecond
	// proposeTimeout bounds one try of a command of a restoration.
	proposeTimeout = 10 * time.Second
	// sumsTimeout bounds the count of a shard's events after a restoration.
	sumsTimeout = time.Hour
)

// copies is this cluster as a backup sees it.
type copies struct{ *Service }

var (
	_ Source = copies{}
	_ Target = copies{}
)

// groupOrder is a request to the leader of a group.
type groupOrder struct {
	Group   id.Shard `json:"group"`
	Command []byte   `json:"command,omitempty"`
	Part    Order    `json:"part,omitzero"`
}

// lead has the leader of a group carry out a request, and looks for it for a while.
func (s *Service) lead(ctx context.Context, method string, o groupOrder) ([]byte, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("encode a request to group %d: %w", o.Group, err)
	}
	var last error
	for late := time.Now().Add(leaderWait); time.Now().Before(late); {
		for _, m := range s.likely(o.Group) {
			answer, err := s.ask(ctx, m, method, body)
			if err == nil {
				return answer, nil
			}
			if last = err; !replicas.Again(err) || ctx.Err() != nil {
				return nil, err
			}
		}
		select {
		case <-time.After(leaderPause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return nil, fmt.Errorf("group %d has no leader that answers: %w", o.Group, last)
}

// likely gives the members of a group, the leader first if this node knows it.
func (s *Service) likely(number id.Shard) []id.Member {
	list := s.cfg.Replicas.Members(number)
	if g, ok := s.cfg.Replicas.Group(number); ok {
		if leader, ok := g.Leader(); ok {
			list = append([]id.Member{leader}, slices.DeleteFunc(list, func(m id.Member) bool { return m == leader })...)
		}
	}
	return list
}

func (s *Service) ask(ctx context.Context, m id.Member, method string, body []byte) ([]byte, error) {
	if m == s.cfg.Self {
		return s.serveCopies(ctx, method, body)
	}
	return s.cfg.Peers.Call(ctx, m, method, body)
}

// Requests to the leader of a group.
const (
	methodPart    = "node.part"
	methodPropose = "node.propose"
	methodSums    = "node.sums"
)

// serveCopies answers lead.
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
		part, err := WriteShard(ctx, o.Part, state, s.cfg.Master)
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

// freeze gives a group's state here that has every write acknowledged before the call.
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

// Part has the leader of a shard write its part (Source).
func (c copies) Part(ctx context.Context, o Order) (part Part, err error) {
	answer, err := c.lead(ctx, methodPart, groupOrder{Group: o.Shard, Part: o})
	if err != nil {
		return part, err
	}
	if err := json.Unmarshal(answer, &part); err != nil {
		return part, fmt.Errorf("read the answer about a part: %w", err)
	}
	return part, nil
}

// Meta gives meta's state (Source): this node has all of it.
func (c copies) Meta(ctx context.Context) (State, error) {
	if err := c.cfg.Records.SyncMeta(ctx); err != nil {
		return nil, err
	}
	return c.cfg.Replicas.Meta().Freeze()
}

// Cluster says what was founded (Target).
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

// Propose has a group's leader carry out a command (Target).
func (c copies) Propose(ctx context.Context, group id.Shard, cmd []byte) ([]byte, error) {
	answer, err := c.lead(ctx, methodPropose, groupOrder{Group: group, Command: cmd})
	if err == nil && group == id.Meta {
		err = c.cfg.Records.SyncMeta(ctx)
	}
	return answer, err
}

// Sums counts and digests what a shard has (Target).
func (c copies) Sums(ctx context.Context, number id.Shard) (list []Slice, err error) {
	ctx, cancel := context.WithTimeout(ctx, sumsTimeout)
	defer cancel()
	answer, err := c.lead(ctx, methodSums, groupOrder{Group: number})
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(answer, &list); err != nil {
		return nil, fmt.Errorf("read what shard %d has: %w", number, err)
	}
	return list, nil
}

// HasGallery tells whether there is such a gallery (Target).
func (c copies) HasGallery(ctx context.Context, g metafsm.Gallery) (bool, error) {
	if err := c.cfg.Records.SyncMeta(ctx); err != nil {
		return false, err
	}
	if r, ok := c.cfg.Replicas.Meta().Restoration(); ok && !r.Done {
		return false, nil // it may be the one that is gone on with
	}
	_, same := c.cfg.Replicas.Meta().Gallery(g.ID)
	_, named := c.cfg.Replicas.Meta().GalleryByName(g.Tenant, g.Name)
	return same || named, nil
}
