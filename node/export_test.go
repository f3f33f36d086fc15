package node

import (
	"context"
	"errors"
	"time"

	"facet/internal/id"
	"facet/raftfsm/shardfsm"
	"facet/shard"
	"facet/shard/kernel"
	"facet/shard/seal"
)

// ShardHere returns the state of a shard's replica on this node.
func (n *Node) ShardHere(number id.Shard) (*shard.Shard, bool) {
	m, here := n.replicas.Shard(number)
	if !here {
		return nil, false
	}
	return m.Shard(), true
}

// DataKey returns a gallery's data key and generation, as the router reads it.
func (n *Node) DataKey(gallery id.Gallery) (*seal.Key, uint32, error) {
	g, known := n.replicas.Meta().Gallery(gallery)
	if !known {
		return nil, 0, errors.New("the gallery is not known")
	}
	raw, err := n.keys.Master().Unwrap(g.WrappedKey, []byte("gallery-data-key"+gallery.String()))
	if err != nil {
		return nil, 0, err
	}
	key, err := seal.NewKey(raw)
	return key, g.Generation, err
}

// SetFree makes the node measure free and size for its disk from now on.
func (n *Node) SetFree(free, size uint64) {
	n.limits.MeasureBy(func() (uint64, uint64, error) { return free, size, nil })
}

// BytesPerTemplate returns the bytes of a template of dim numbers in this node's kernel.
func (n *Node) BytesPerTemplate(dim int) float64 {
	m, err := kernel.New(n.replicas.Arena(), dim, nil)
	if err != nil {
		return 0
	}
	return m.BytesPerTemplate()
}

// Break takes a replica here out of service because of err.
func (n *Node) Break(number id.Shard, err error) { n.replicas.Damage(number, err) }

// DigestHere returns the digest of a shard's replica on this node.
func (n *Node) DigestHere(number id.Shard) (sum [32]byte, applied uint64, here bool) {
	machine, here := n.replicas.Shard(number)
	group, open := n.replicas.Group(number)
	if !here || !open {
		return sum, 0, false
	}
	return machine.Digest(), group.Applied(), true
}

// ReportKeyUses reports the uses of access keys now, and none of these keys' again for a quarter of an hour.
func (n *Node) ReportKeyUses(ctx context.Context) error { return n.keyUses.Report(ctx) }

// CutLog makes a shard's replica here write a snapshot and empty its log.
func (n *Node) CutLog(number id.Shard) error {
	group, here := n.replicas.Group(number)
	if !here {
		return errors.New("the shard is not here")
	}
	return group.Erase(time.Now().Add(time.Hour))
}

// ReadSegments opens the segments of a shard's replica here, as a backup does, until done is called.
func (n *Node) ReadSegments(number id.Shard) (done func()) {
	machine, _ := n.replicas.Shard(number)
	return machine.Shard().Freeze().Release
}

// Leads reports whether this node leads a group.
func (n *Node) Leads(number id.Shard) bool {
	g, open := n.replicas.Group(number)
	return open && g.IsLeader()
}

// Spoil changes the state of a shard's replica here, and of no other.
func (n *Node) Spoil(number id.Shard) {
	machine, _ := n.replicas.Shard(number)
	group, _ := n.replicas.Group(number)
	machine.Apply(group.Applied(), shardfsm.GrantOp.Encode(shardfsm.Grant{Gallery: id.Gallery{UUID: id.Random([16]byte{1})}, Generation: 1, Total: 7}))
}

// Diverged counts the replicas that this node found to differ.
func (n *Node) Diverged() int {
	_, diverged := n.checks.Counts()
	return diverged
}

// Compared counts the comparisons that this node made as a leader.
func (n *Node) Compared() int {
	compared, _ := n.checks.Counts()
	return compared
}

// Alarms returns the alarms of this node.
func (n *Node) Alarms() []string { return n.alarms() }

// Seen returns how many nodes gossip shows, this one included.
func (n *Node) Seen() int { return len(n.gossip.Members()) }
