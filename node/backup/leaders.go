package backup

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"facet/internal/id"
	"facet/node/loop"
	"facet/node/replicas"
	"facet/raftfsm/metafsm"
	"facet/router"
)

const (
	// leaderWait is how long a backup waits for the leader of a group. It asks the members
	// again after each leaderInterval.
	leaderWait     = 30 * time.Second
	leaderInterval = 200 * time.Millisecond
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
// for the leader for up to leaderWait.
func (s *Service) callLeader(ctx context.Context, method string, o groupOrder) ([]byte, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("encode a request to group %d: %w", o.Group, err)
	}
	var last error
	for late := time.Now().Add(leaderWait); time.Now().Before(late); {
		for _, m := range s.leaderFirst(o.Group) {
			answer, err := s.ask(ctx, m, method, body)
			if err == nil {
				return answer, nil
			}
			if last = err; !replicas.Again(err) || ctx.Err() != nil {
				return nil, err
			}
		}
		if err := loop.Pause(ctx, leaderInterval); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("group %d has no leader that answers: %w", o.Group, last)
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
