package node

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"facet/internal/id"
	"facet/node/backup"
	"facet/node/bucket"
	"facet/node/replicas"
	"facet/node/wire"
	"facet/raftfsm/metafsm"
	"facet/router"
	"facet/shard/seal"
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

// copies is this cluster as a backup sees it (backup.Source, backup.Target).
type copies struct{ *Node }

var (
	_ backup.Source = copies{}
	_ backup.Target = copies{}
)

// groupOrder is a request to the leader of a group.
type groupOrder struct {
	Group   id.Shard     `json:"group"`
	Command []byte       `json:"command,omitempty"`
	Part    backup.Order `json:"part,omitzero"`
}

// lead has the leader of a group carry out a request, and looks for it for a while.
func (n *Node) lead(ctx context.Context, method string, o groupOrder) ([]byte, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("encode a request to group %d: %w", o.Group, err)
	}
	var last error
	for late := time.Now().Add(leaderWait); time.Now().Before(late); {
		for _, m := range n.likely(o.Group) {
			answer, err := n.ask(ctx, m, method, body)
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
func (n *Node) likely(number id.Shard) []id.Member {
	list := n.replicas.Members(number)
	if g, ok := n.replicas.Group(number); ok {
		if leader, ok := g.Leader(); ok {
			list = append([]id.Member{leader}, slices.DeleteFunc(list, func(m id.Member) bool { return m == leader })...)
		}
	}
	return list
}

func (n *Node) ask(ctx context.Context, m id.Member, method string, body []byte) ([]byte, error) {
	if m == n.member {
		return n.serveCopies(ctx, method, body)
	}
	return n.peers.Call(ctx, m, method, body)
}

// Requests to the leader of a group.
const (
	methodPart    = methodOwn + "part"
	methodPropose = methodOwn + "propose"
	methodSums    = methodOwn + "sums"
)

// serveCopies answers lead.
func (n *Node) serveCopies(ctx context.Context, method string, body []byte) ([]byte, error) {
	var o groupOrder
	if err := json.Unmarshal(body, &o); err != nil {
		return nil, fmt.Errorf("read a request about a group: %w", err)
	}
	group, ok := n.replicas.Group(o.Group)
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
		state, err := n.freeze(ctx, o.Group)
		if err != nil {
			return nil, replicas.Heal(o.Group, err)
		}
		part, err := backup.WriteShard(ctx, o.Part, state, n.keys.Master())
		if err != nil {
			return nil, err
		}
		return json.Marshal(part)
	default:
		state, err := n.freeze(ctx, o.Group)
		if err != nil {
			return nil, replicas.Heal(o.Group, err)
		}
		sums, err := backup.Sums(state)
		if err != nil {
			return nil, err
		}
		return json.Marshal(sums)
	}
}

// freeze gives a group's state here that has every write acknowledged before the call.
func (n *Node) freeze(ctx context.Context, number id.Shard) (backup.State, error) {
	group, ok := n.replicas.Group(number)
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
		return n.replicas.Meta().Freeze()
	}
	machine, ok := n.replicas.Shard(number)
	if !ok {
		return nil, replicas.NotHere(number)
	}
	return machine.Freeze()
}

// Part has the leader of a shard write its part (backup.Source).
func (c copies) Part(ctx context.Context, o backup.Order) (part backup.Part, err error) {
	answer, err := c.lead(ctx, methodPart, groupOrder{Group: o.Shard, Part: o})
	if err != nil {
		return part, err
	}
	if err := json.Unmarshal(answer, &part); err != nil {
		return part, fmt.Errorf("read the answer about a part: %w", err)
	}
	return part, nil
}

// Meta gives meta's state (backup.Source): this node has all of it.
func (c copies) Meta(ctx context.Context) (backup.State, error) {
	if err := c.router.SyncMeta(ctx); err != nil {
		return nil, err
	}
	return c.replicas.Meta().Freeze()
}

// Cluster says what was founded (backup.Target).
func (c copies) Cluster(ctx context.Context) (metafsm.Cluster, error) {
	if err := c.router.SyncMeta(ctx); err != nil {
		return metafsm.Cluster{}, err
	}
	cluster, ok := c.replicas.Meta().Cluster()
	if !ok || c.replicas.Meta().Shards().Epoch == 0 {
		return cluster, router.Errorf(router.Unavailable, "", "the cluster is not founded yet")
	}
	return cluster, nil
}

// Propose has a group's leader carry out a command (backup.Target).
func (c copies) Propose(ctx context.Context, group id.Shard, cmd []byte) ([]byte, error) {
	answer, err := c.lead(ctx, methodPropose, groupOrder{Group: group, Command: cmd})
	if err == nil && group == id.Meta {
		err = c.router.SyncMeta(ctx)
	}
	return answer, err
}

// Sums counts and digests what a shard has (backup.Target).
func (c copies) Sums(ctx context.Context, s id.Shard) (list []backup.Slice, err error) {
	ctx, cancel := context.WithTimeout(ctx, sumsTimeout)
	defer cancel()
	answer, err := c.lead(ctx, methodSums, groupOrder{Group: s})
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(answer, &list); err != nil {
		return nil, fmt.Errorf("read what shard %d has: %w", s, err)
	}
	return list, nil
}

// HasGallery tells whether there is such a gallery (backup.Target).
func (c copies) HasGallery(ctx context.Context, g metafsm.Gallery) (bool, error) {
	if err := c.router.SyncMeta(ctx); err != nil {
		return false, err
	}
	if r, ok := c.replicas.Meta().Restoration(); ok && !r.Done {
		return false, nil // it may be the one that is gone on with
	}
	_, same := c.replicas.Meta().Gallery(g.ID)
	_, named := c.replicas.Meta().GalleryByName(g.Tenant, g.Name)
	return same || named, nil
}

// Backup makes a backup; Galleries of q are names (TENANT/GALLERY) or ids.
func (n *Node) Backup(ctx context.Context, q wire.BackupOrder, progress func(done, total int)) (backup.Manifest, error) {
	if r, ok := n.replicas.Meta().Restoration(); ok && !r.Done {
		return backup.Manifest{}, router.Errorf(router.InvalidRequest, "", "a backup is being restored into this cluster: end that first")
	}
	if err := n.router.SyncMeta(ctx); err != nil {
		return backup.Manifest{}, err
	}
	galleries, err := n.galleries(q.Galleries)
	if err != nil {
		return backup.Manifest{}, err
	}
	if q.Name == "" {
		q.Name = time.Now().UTC().Format(backupNameFormat)
	}
	return backup.Run(ctx, backup.Options{
		URL: q.To, Name: q.Name, Galleries: galleries, Version: wire.Version, Master: n.keys.Master(), Progress: progress,
	}, copies{n})
}

// galleries finds galleries by their ids, or names with their tenants' before.
func (n *Node) galleries(wanted []string) ([]id.Gallery, error) {
	var list []id.Gallery
	for _, w := range wanted {
		found := len(list)
		for _, t := range n.replicas.Meta().Tenants() {
			for _, g := range n.replicas.Meta().Galleries(t.ID) {
				if w == g.ID.String() || w == t.Name+"/"+g.Name {
					list = append(list, g.ID)
				}
			}
		}
		if len(list) == found {
			return nil, router.Errorf(router.NotFound, "", "there is no gallery %q (TENANT/GALLERY, or an id)", w)
		}
	}
	return list, nil
}

// Restore restores a backup into this cluster.
func (n *Node) Restore(ctx context.Context, q wire.RestoreOrder, progress func(done, total int)) (backup.Restored, error) {
	from, err := n.masterOf(q.Key)
	if err != nil {
		return backup.Restored{}, err
	}
	if q.Name, err = n.named(ctx, q.From, q.Name); err != nil {
		return backup.Restored{}, err
	}
	return backup.Restore(ctx, backup.RestoreOptions{
		URL: q.From, Name: q.Name, Gallery: q.Gallery, From: from, To: n.keys.Master(), Erased: q.Erasures, WithErased: q.WithErased, Progress: progress,
	}, copies{n})
}

// masterOf gives the cluster's key that a backup was made with; none is this one's.
func (n *Node) masterOf(key []byte) (*seal.Master, error) {
	if len(key) == 0 {
		return n.keys.Master(), nil
	}
	return seal.NewMaster(key)
}

// named gives the name of the newest backup where none is given.
func (n *Node) named(ctx context.Context, url, name string) (string, error) {
	if name != "" {
		return name, nil
	}
	f, err := bucket.OpenFolder(ctx, url)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // what was written is closed by then
	return backup.Newest(ctx, f)
}
