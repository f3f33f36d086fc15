package backup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"facet/internal/id"
	"facet/node/datadir"
	"facet/node/replicas"
	"facet/raftfsm"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
	"facet/shard/kernel"
)

// Recovery is the plan of "facet recover" for the remaining data directories of a cluster.
type Recovery struct {
	Cluster id.Cluster       `json:"cluster"`
	Groups  []RecoveredGroup `json:"groups"` // meta first, then the shards in order
	// Lost lists the shards of which no replica remains.
	Lost []id.Shard `json:"lost"`
	// Gone lists the names of the nodes that will be removed from the cluster.
	Gone []string `json:"gone"`

	dirs    []string
	stopped map[id.Shard][]*candidate
	state   *metafsm.Machine
}

// RecoveredGroup is a group of which a replica remains.
type RecoveredGroup struct {
	Group id.Shard `json:"group"`
	// Dir is the data directory whose replica becomes the only one. Its log is the most
	// advanced.
	Dir string `json:"dir"`
	// Last is the index of its last entry. Acknowledged entries after it are lost. Entries
	// up to Snapshot are known to be committed. Those between the two may never have been
	// acknowledged; they count from now on.
	Last     uint64 `json:"last"`
	Snapshot uint64 `json:"snapshot"`
	// Voters is how many members the group had.
	Voters int `json:"voters"`
	// Erased lists the directories whose replica of the group will be erased.
	Erased []string `json:"erased,omitempty"`
}

// candidate is a remaining replica.
type candidate struct {
	*raftfsm.Stopped
	dir    string
	folder string
}

// OpenRecovery examines the remaining data directories of a cluster. No node may run on
// them. The caller closes the Recovery.
func OpenRecovery(dirs []string) (_ *Recovery, err error) {
	r := &Recovery{dirs: dirs, stopped: map[id.Shard][]*candidate{}, state: metafsm.New(), Lost: []id.Shard{}, Gone: []string{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	members := map[id.Member]bool{}
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, datadir.IdentityFile)); err != nil {
			return nil, fmt.Errorf("%s is no data directory: %w", filepath.Base(dir), err)
		}
		who, err := datadir.Open(dir)
		if err == nil {
			err = datadir.CheckLevel(dir, metafsm.Level)
		}
		if err != nil {
			return nil, err
		}
		members[who.Member()] = true
		if err := r.open(dir, who.Member(), id.Meta); err != nil {
			return nil, err
		}
	}
	if err := r.meta(); err != nil {
		return nil, err
	}
	for _, at := range r.state.Shards().Shards {
		for _, dir := range dirs {
			who, err := datadir.Open(dir)
			if err == nil {
				err = r.open(dir, who.Member(), at.Shard)
			}
			if err != nil {
				return nil, err
			}
		}
		if best := r.best(at.Shard); best == nil {
			r.Lost = append(r.Lost, at.Shard)
		}
	}
	for _, n := range r.state.Nodes() {
		if !members[n.Member] && n.State != metafsm.NodeRemoved {
			r.Gone = append(r.Gone, n.Name)
		}
	}
	r.describe()
	return r, nil
}

// open opens the replica of a group in a directory, if it has one.
func (r *Recovery) open(dir string, self id.Member, number id.Shard) error {
	folder := replicas.Folder(dir, number)
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("look into %s: %w", filepath.Base(dir), err)
	}
	if len(entries) == 0 {
		return nil
	}
	var machine raftfsm.Machine = shardfsm.New(nil, kernel.NewArena(0))
	if number == id.Meta {
		machine = metafsm.New()
		if len(r.stopped[id.Meta]) == 0 {
			machine = r.state
		}
	}
	s, err := raftfsm.OpenStopped(raftfsm.Config{Group: number, Self: self, Dir: folder, Prepared: true}, machine)
	if err != nil {
		return fmt.Errorf("%s: %w (does a node run on it?)", filepath.Base(dir), err)
	}
	if s.Last == 0 {
		return s.Close()
	}
	r.stopped[number] = append(r.stopped[number], &candidate{s, dir, folder})
	return nil
}

// best returns the replica of a group with the most advanced log, or nil.
func (r *Recovery) best(number id.Shard) *candidate {
	list := r.stopped[number]
	if len(list) == 0 {
		return nil
	}
	return slices.MaxFunc(list, func(a, b *candidate) int {
		if a.LastTerm != b.LastTerm {
			return int(int64(a.LastTerm - b.LastTerm))
		}
		return int(int64(a.Last - b.Last))
	})
}

// meta reads the cluster's records.
func (r *Recovery) meta() error {
	best := r.best(id.Meta)
	if best == nil {
		return errors.New("no directory has a replica of the cluster's records (group 0): restore a backup into a new cluster")
	}
	if best != r.stopped[id.Meta][0] { // only the first one has the machine r.state
		self, dir := best.Self(), best.dir
		for _, c := range r.stopped[id.Meta] {
			if err := c.Close(); err != nil {
				return err
			}
		}
		old := r.stopped[id.Meta]
		r.stopped[id.Meta], r.state = nil, metafsm.New()
		if err := r.open(dir, self, id.Meta); err != nil {
			return err
		}
		for _, c := range old {
			if c != best {
				if err := r.open(c.dir, c.Self(), id.Meta); err != nil {
					return err
				}
			}
		}
		best = r.stopped[id.Meta][0]
	}
	if err := best.Replay(); err != nil {
		return fmt.Errorf("read the cluster's records: %w", err)
	}
	c, founded := r.state.Cluster()
	if !founded {
		return errors.New("the cluster was never founded")
	}
	r.Cluster = c.ID
	return nil
}

// describe fills in Groups.
func (r *Recovery) describe() {
	numbers := []id.Shard{id.Meta}
	for _, at := range r.state.Shards().Shards {
		numbers = append(numbers, at.Shard)
	}
	for _, number := range numbers {
		best := r.best(number)
		if best == nil {
			continue
		}
		g := RecoveredGroup{Group: number, Dir: best.dir, Last: best.Last, Snapshot: best.Snapshot}
		for _, m := range best.Members {
			if m.Voter {
				g.Voters++
			}
		}
		for _, c := range r.stopped[number] {
			if c != best {
				g.Erased = append(g.Erased, c.dir)
			}
		}
		r.Groups = append(r.Groups, g)
	}
}

// Carry makes the best replica of each group its only member and erases the others. In the
// cluster's records it removes the nodes that are gone and gives each shard to its remaining
// node. It may be repeated after a crash.
func (r *Recovery) Carry() error {
	now := r.state.Shards()
	for i, at := range now.Shards {
		best := r.best(at.Shard)
		if best == nil {
			continue
		}
		now.Shards[i].Voters, now.Shards[i].Leaving, now.Shards[i].Moving = []id.Member{best.Self()}, nil, false
		if err := best.Recover(); err != nil {
			return err
		}
	}
	// A map of epoch 0 has no shards.
	var commands [][]byte
	if now.Epoch > 0 {
		commands = append(commands, metafsm.PutShardsOp.Encode(metafsm.PutShards{Previous: now.Epoch, Shards: now.Shards}))
	}
	for _, n := range r.state.Nodes() {
		if slices.Contains(r.Gone, n.Name) && n.State != metafsm.NodeRemoved && !r.here(n.Member) {
			commands = append(commands, metafsm.SetNodeStateOp.Encode(metafsm.SetNodeState{Node: n.ID, State: metafsm.NodeRemoved}))
		}
	}
	if err := r.best(id.Meta).Recover(commands...); err != nil {
		return err
	}
	return r.erase()
}

func (r *Recovery) here(m id.Member) bool {
	for _, list := range r.stopped {
		for _, c := range list {
			if c.Self() == m {
				return true
			}
		}
	}
	return false
}

// forget removes from each directory's registry the groups whose only member is now in
// another directory, so that the node can get new replicas of them. Lost shards stay in the
// registry, because no node may bootstrap them empty.
func (r *Recovery) forget() error {
	for _, dir := range r.dirs {
		who, err := datadir.Open(dir)
		if err != nil {
			return err
		}
		var others []id.Shard
		for number := range r.stopped {
			if best := r.best(number); best != nil && best.dir != dir {
				others = append(others, number)
			}
		}
		if err := datadir.NewRegistry(dir, who).Forget(others...); err != nil {
			return err
		}
	}
	return nil
}

// erase removes the replicas that were not chosen. Their nodes get new ones.
func (r *Recovery) erase() error {
	if err := r.forget(); err != nil {
		return err
	}
	for number, list := range r.stopped {
		best := r.best(number)
		for _, c := range list {
			if c == best {
				continue
			}
			if err := c.Close(); err != nil {
				return fmt.Errorf("close group %d: %w", number, err)
			}
			if err := os.RemoveAll(c.folder); err != nil {
				return fmt.Errorf("erase group %d of %s: %w", number, filepath.Base(c.dir), err)
			}
		}
		r.stopped[number] = []*candidate{best}
	}
	return nil
}

// Close closes the replicas.
func (r *Recovery) Close() error {
	var errs []error
	for _, list := range r.stopped {
		for _, c := range list {
			errs = append(errs, c.Close())
		}
	}
	r.stopped = nil
	return errors.Join(errs...)
}
