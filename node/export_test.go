package node

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"facet/internal/answers"
	"facet/internal/id"
	"facet/internal/must"
	"facet/node/audit/reading"
	"facet/node/replicas"
	"facet/node/wire"
	"facet/raftfsm"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
	"facet/shard"
	"facet/shard/claim"
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

// WarnOfExpiry logs which certificates end soon after now.
func (n *Node) WarnOfExpiry(ctx context.Context, now time.Time) bool {
	return n.keys.WarnOfExpiry(ctx, now)
}

// Rotate replaces a key that all nodes share.
func (n *Node) Rotate(ctx context.Context, o wire.RingOrder) (wire.RingAnswer, error) {
	return n.keys.Rotate(ctx, o)
}

// Certificates has a node request new certificates, or gives them to it.
func (n *Node) Certificates(ctx context.Context, o wire.CertificateOrder) (wire.CertificateAnswer, error) {
	return n.keys.Certificates(ctx, o)
}

// RecordedLevels returns the level in each node's record.
func (n *Node) RecordedLevels() []uint32 {
	var list []uint32
	for _, r := range n.replicas.Meta().Nodes() {
		list = append(list, r.Knows())
	}
	return list
}

// SnapshotHere makes a group's replica here write a snapshot.
func (n *Node) SnapshotHere(number id.Shard) error {
	g, ok := n.replicas.Group(number)
	if !ok {
		return replicas.NotHere(number)
	}
	return g.Snapshot()
}

// NotedLevel returns the cluster's level, once this node's data directory says so.
func (n *Node) NotedLevel() uint32 { return n.replicas.NotedLevel() }

// Member returns the node's name in Raft.
func (n *Node) Member() id.Member { return n.member }

// ShardMap returns the shard map as this node has it.
func (n *Node) ShardMap() metafsm.ShardMap { return n.replicas.Meta().Shards() }

// HasCaughtUp reports whether this node counts a member among those that have caught up.
func (n *Node) HasCaughtUp(ctx context.Context, number id.Shard, m id.Member) bool {
	return n.replicas.CaughtUp(ctx, number, 0, []id.Member{m}) == 1
}

// OpenEmpty opens a replica of a group that was never bootstrapped.
func (n *Node) OpenEmpty(number id.Shard) error { return n.replicas.OpenEmpty(number) }

// Group returns the Raft group of a shard here.
func (n *Node) Group(number id.Shard) (*raftfsm.Group, bool) { return n.replicas.Group(number) }

// RoleOf returns the role of a replica here, as the node reports it.
func (n *Node) RoleOf(number id.Shard) string {
	for _, g := range n.admin.Own().Groups {
		if g.Group == number {
			return g.Role
		}
	}
	return ""
}

// StateLost returns how many replicas and nodes this node knows to have lost state.
func (n *Node) StateLost() int { return n.detector.Count() }

// KnownIndex returns the highest index that this node knows another member to have.
func (n *Node) KnownIndex(m id.Member, number id.Shard) uint64 {
	k, _ := n.marks.Marks(number).Known(m)
	return k.Index
}

// KnownStart returns the last start of another member that this node knows.
func (n *Node) KnownStart(m id.Member) uint64 { return n.marks.Start(m) }

// OwnStart returns the number of this node's start.
func (n *Node) OwnStart() uint64 { return n.marks.Start(n.member) }

// Accuse makes this node treat another member as one that has fallen behind what it
// acknowledged, as its transport does.
func (n *Node) Accuse(m id.Member, number id.Shard) {
	marks := n.marks.Marks(number)
	k, _ := marks.Known(m)
	marks.Behind(m, k)
}

// KnownLife returns the life of another member's replica that this node knows.
func (n *Node) KnownLife(m id.Member, number id.Shard) uint64 {
	k, _ := n.marks.Marks(number).Known(m)
	return k.Life
}

// OwnLife returns the life of this node's replica.
func (n *Node) OwnLife(number id.Shard) uint64 { return n.marks.Life(number) }

// OpenTelling is Open that tells the name of each part before it starts it.
func OpenTelling(ctx context.Context, cfg Config, starts func(name string)) (*Node, error) {
	return open(ctx, cfg, starts)
}

// PartNames returns the names of the parts in the order of their start.
func PartNames() []string {
	var list []string
	for _, p := range parts {
		list = append(list, p.name)
	}
	return list
}

// DataSecret returns the bytes of a gallery's data key.
func (n *Node) DataSecret(gallery id.Gallery) ([]byte, error) {
	g, _ := n.replicas.Meta().Gallery(gallery)
	return n.keys.Master().Unwrap(g.WrappedKey, []byte("gallery-data-key"+gallery.String()))
}

// ExternalHome returns the home shard of an external id, and its name.
func (n *Node) ExternalHome(gallery id.Gallery, externalID string) (id.Shard, shard.ExternalName, error) {
	key, generation, err := n.DataKey(gallery)
	if err != nil {
		return 0, shard.ExternalName{}, err
	}
	name := shard.NameExternal(key, gallery, generation, externalID)
	cluster, _ := n.replicas.Meta().Cluster()
	return id.Shard(metafsm.Jump(binary.BigEndian.Uint64(name[:8]), cluster.Shards) + 1), name, nil
}

// LeaveClaim claims an external id for a subject on the leader of its home, as a node does that dies
// before it registers the subject. ok is false if the leader is elsewhere.
func (n *Node) LeaveClaim(ctx context.Context, gallery id.Gallery, externalID string, subject id.Subject) (ok bool, err error) {
	home, name, err := n.ExternalHome(gallery, externalID)
	if err != nil {
		return false, err
	}
	g, here := n.replicas.Group(home)
	if !here || !g.IsLeader() {
		return false, nil
	}
	_, generation, err := n.DataKey(gallery)
	if err != nil {
		return false, err
	}
	raw, err := g.Propose(ctx, shardfsm.ClaimOp.Encode(shardfsm.Claim{
		Gallery: gallery, Generation: generation, Changes: []claim.Change{{Name: name, Subject: subject}},
	}))
	if err != nil {
		return false, err
	}
	a, err := shardfsm.ClaimOp.Answer(raw)
	if err == nil && (a.Status != shardfsm.Done || a.Holders[0].Subject != subject) {
		err = errors.New("the external id is taken")
	}
	return err == nil, err
}

// ClaimsHere counts the claims on this node's replicas of all shards.
func (n *Node) ClaimsHere() (count int) {
	for _, s := range n.router.Shards() {
		if m, here := n.replicas.Shard(s); here {
			count += m.Claims().Len()
		}
	}
	return count
}

// ClusterRecords returns the records of the cluster's own log.
func (n *Node) ClusterRecords(t *testing.T) []answers.AuditRecord {
	t.Helper()
	q, err := reading.ParseQuery(map[string]string{"length": "200"})
	must.Do(t, err)
	page, err := reading.Log{Service: n.router, Tenant: id.ClusterLog}.Page(context.WithoutCancel(t.Context()), q)
	must.Do(t, err)
	return page.Records
}

// ClusterFile returns a file of the cluster's own log by its path.
func (n *Node) ClusterFile(t *testing.T, path string) []byte {
	t.Helper()
	content, _, err := reading.Log{Service: n.router, Tenant: id.ClusterLog}.File(t.Context(), path)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return content
}

// Rounds records the rounds of erasure on this node's disk at each call of look.
func (n *Node) Rounds() (look func()) { return newRounds(n).look }

// RecordRefusals records the minutes before one.
func (n *Node) RecordRefusals(before int64) { n.recorder.RecordRefusals(before) }
