package node

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"facet/internal/id"
	"facet/internal/must"
	"facet/node/backup"
	"facet/node/bucket"
	"facet/node/replicas"
	"facet/node/wire"
	"facet/raftfsm"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
	"facet/router"
	"facet/router/routing"
	"facet/shard/job"
	"facet/shard/seal"
)

// Restoration returns the restoration that this node's replica of meta records.
func (n *Node) Restoration() (metafsm.Restoration, bool) { return n.replicas.Meta().Restoration() }

// Erasures returns the subjects that a backup knows as erased.
func (n *Node) Erasures(ctx context.Context, q wire.BackupQuery) ([]backup.Erasure, error) {
	f, err := bucket.OpenFolder(ctx, q.From)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return backup.Deleted(ctx, f, q.Name, n.keys.Master())
}

// NewTenantKey makes an access key of a tenant.
func (n *Node) NewTenantKey(ctx context.Context, tenant string) (router.AccessKey, error) {
	t, err := n.router.TenantNamed(ctx, tenant)
	if err != nil {
		return router.AccessKey{}, err
	}
	return n.router.CreateAccessKey(ctx, t, router.KeyTerms{Role: router.RoleAdmin})
}

// RestoreMeeting restores a backup and calls meets once, before meta loads its records.
func (n *Node) RestoreMeeting(ctx context.Context, q wire.RestoreOrder, meets func()) (backup.Restored, error) {
	from, err := seal.NewMaster(q.Key)
	if len(q.Key) == 0 {
		from, err = n.keys.Master(), nil
	}
	if err != nil {
		return backup.Restored{}, err
	}
	f, err := bucket.OpenFolder(ctx, q.From)
	if err != nil {
		return backup.Restored{}, err
	}
	name, err := backup.Newest(ctx, f)
	if err = errors.Join(err, f.Close()); err != nil {
		return backup.Restored{}, err
	}
	return backup.Restore(ctx, backup.RestoreOptions{URL: q.From, Name: name, From: from, To: n.keys.Master()}, &meeting{n.backups.Target(), meets})
}

type meeting struct {
	backup.Target
	meets func()
}

func (m *meeting) Propose(ctx context.Context, group id.Shard, cmd []byte) ([]byte, error) {
	if group == id.Meta && len(cmd) > 512 && m.meets != nil { // more than what begins a restoration
		m.meets()
		m.meets = nil
	}
	return m.Target.Propose(ctx, group, cmd)
}

// ReplaceKey is Rotate without its checks, as if it had started before a restoration.
func (n *Node) ReplaceKey(ctx context.Context, o wire.RingOrder) (wire.RingAnswer, error) {
	return n.keys.ReplaceKey(ctx, o)
}

// ChangeMaster changes the node's cluster keys. The first one wraps.
func (n *Node) ChangeMaster(secrets ...[]byte) error { return n.keys.Master().Change(secrets) }

// casesHere calls f with each case of this node's replicas.
func (n *Node) casesHere(t *testing.T, f func(at id.Shard, name job.Name, index uint32, key *seal.Key, sealed []byte, c job.Case)) {
	t.Helper()
	for _, number := range n.replicas.Numbers() {
		m, ok := n.replicas.Shard(number)
		if !ok {
			continue
		}
		for _, name := range m.Jobs().Batches(job.Cases) {
			secret, err := n.DataSecret(name.Gallery)
			must.Do(t, err)
			key, err := seal.NewKey(secret)
			must.Do(t, err)
			page, _, _ := m.Jobs().Page(name, 0, job.CasesMax)
			for _, r := range page {
				if len(r.Sealed) == 0 {
					continue
				}
				c, err := job.OpenCase(key, name.Gallery, name.Generation, r.Sealed)
				must.Do(t, err)
				f(number, name, r.Index, key, r.Sealed, c)
			}
		}
	}
}

// CasesHere returns the cases of this node's replicas.
func (n *Node) CasesHere(t *testing.T) (list []job.Case) {
	t.Helper()
	n.casesHere(t, func(_ id.Shard, _ job.Name, _ uint32, _ *seal.Key, _ []byte, c job.Case) { list = append(list, c) })
	return list
}

// AgeCases changes the cases of the shards that this node leads.
func (n *Node) AgeCases(t *testing.T, change func(*job.Case)) {
	t.Helper()
	n.casesHere(t, func(at id.Shard, name job.Name, index uint32, key *seal.Key, sealed []byte, c job.Case) {
		g, ok := n.replicas.Group(at)
		if !ok || !g.IsLeader() {
			return
		}
		change(&c)
		put := shardfsm.PutItem{
			Name: shardfsm.JobName{Gallery: name.Gallery, Generation: name.Generation, Batch: name.Batch}, Kind: job.Cases, Index: index, Old: sealed,
			New: job.SealCase(key, name.Gallery, name.Generation, &c),
		}
		if _, err := g.Propose(t.Context(), shardfsm.PutItemOp.Encode(put)); err != nil {
			t.Fatal(err)
		}
	})
}

// RedactDuplicates takes the pairs of subjects that are gone out of the reports of the shards that this
// node leads.
func (n *Node) RedactDuplicates(ctx context.Context) error { return n.router.RedactDuplicates(ctx) }

// PairsHere returns how many pairs the reports have on this node's replicas.
func (n *Node) PairsHere() (pairs int) {
	for _, number := range n.replicas.Numbers() {
		if m, ok := n.replicas.Shard(number); ok {
			for _, name := range m.Jobs().Batches(job.Duplicates) {
				pairs += m.Jobs().Paired(name)
			}
		}
	}
	return pairs
}

// LeadsReport reports whether this node leads a shard with a comparison that goes on.
func (n *Node) LeadsReport() bool {
	for _, number := range n.replicas.Numbers() {
		g, ok := n.replicas.Group(number)
		if m, here := n.replicas.Shard(number); ok && here && g.IsLeader() && m.Jobs().Left(job.Duplicates) > 0 {
			return true
		}
	}
	return false
}

// DifferentHere returns how many pairs of different subjects this node's replicas have.
func (n *Node) DifferentHere() (pairs int) {
	for _, number := range n.replicas.Numbers() {
		m, ok := n.replicas.Shard(number)
		if !ok {
			continue
		}
		for _, name := range m.Jobs().Batches(job.Different) {
			page, _, _ := m.Jobs().Page(name, 0, job.DifferentMax)
			for _, r := range page {
				if len(r.Sealed) > 0 {
					pairs++
				}
			}
		}
	}
	return pairs
}

// aheadClock is a clock that is ahead of the node's, and that the others confirm.
type aheadClock struct{ by time.Duration }

func (c aheadClock) Now() time.Time             { return time.Now().Add(c.by) }
func (c aheadClock) Trusted() (time.Time, bool) { return c.Now(), true }

// ExpireMeeting expires the events and the cases that are due after a time, on the shards that this node leads. It
// calls meets between the answer to each expiry and its record. An error is one of a leader that has changed.
func (n *Node) ExpireMeeting(t *testing.T, after time.Duration, meets func()) {
	t.Helper()
	r := routing.New(routing.Config{
		Groups: n.replicas, Peers: n.peers, Extractor: n.cfg.Extractor, Table: n.cfg.Table, Master: n.keys.Master(), Log: n.log, Memory: n.limits,
		Clock: aheadClock{after}, Acted: func(a router.Act) {
			meets()
			recordAct(n, a)
		},
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := r.ExpireEvents(ctx); err != nil {
		t.Logf("node %s expires events: %v", n.cfg.Name, err)
	}
	if err := r.RedactDuplicates(ctx); err != nil {
		t.Logf("node %s expires cases: %v", n.cfg.Name, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// HandOver lets another node lead shard 1, and waits until it does.
func (n *Node) HandOver(t *testing.T, to *Node) {
	t.Helper()
	g, ok := n.replicas.Group(id.Shard(1))
	other, there := to.replicas.Group(id.Shard(1))
	if !ok || !there {
		t.Error("a node has no replica of shard 1")
		return
	}
	if err := g.Transfer(t.Context(), to.member); err != nil {
		t.Errorf("hand shard 1 over: %v", err)
		return
	}
	for late := time.Now().Add(10 * time.Second); !other.IsLeader(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(late) {
			t.Error("shard 1 has no new leader")
			return
		}
	}
}

// mergers has a function for each open node that stops its merges.
var mergers sync.Map

func init() {
	for i, p := range parts {
		if p.name != "merges" {
			continue
		}
		parts[i].start = func(ctx context.Context, n *Node) (func() error, error) {
			stop, err := p.start(ctx, n)
			mergers.Store(n, stop)
			return stop, err
		}
	}
}

// EventsHere returns how many events this node's replica of a subject's shard has of it.
func (n *Node) EventsHere(g id.Gallery, generation uint32, s id.Subject) int {
	m, ok := n.replicas.Shard(s.Shard())
	if !ok {
		return 0
	}
	list, _ := m.Shard().Events(g, generation, s) // a deleted gallery has none
	return len(list)
}

// StopMerges stops the loop that carries out merges; then only CarryOut does.
func (n *Node) StopMerges() error {
	stop, _ := mergers.LoadAndDelete(n)
	return stop.(func() error)() //nolint:forcetypeassert // by init
}

// behind has a node's groups with an old state of meta, until a caller asks for meta's
// group.
type behind struct {
	*replicas.Replicas
	then   *metafsm.Machine
	caught atomic.Bool
}

func (b *behind) Meta() *metafsm.Machine {
	if b.caught.Load() {
		return b.Replicas.Meta()
	}
	return b.then
}

// Group returns the replica of a group; who asks for meta's waits for it (router.syncMeta).
func (b *behind) Group(number id.Shard) (*raftfsm.Group, bool) {
	if number == id.Meta {
		b.caught.Store(true)
	}
	return b.Replicas.Group(number)
}

// RouterBehind returns a router on this node that sees no change of meta after the call
// unless it syncs. Close it before the node.
func (n *Node) RouterBehind() (*routing.Router, error) {
	frozen, err := n.replicas.Meta().Freeze()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if _, err := frozen.WriteTo(&b); err != nil {
		return nil, err
	}
	then := metafsm.New()
	if err := then.Restore(&b); err != nil {
		return nil, err
	}
	return routing.New(routing.Config{
		Groups: &behind{Replicas: n.replicas, then: then}, Peers: n.peers, Extractor: n.cfg.Extractor, Table: n.cfg.Table,
		Master: n.keys.Master(), Log: n.log, Bulk: true, Memory: n.limits,
	}), nil
}

// AccessTo returns the first application of a tenant's gallery.
func (n *Node) AccessTo(tenant id.Tenant, gallery string) (a router.Access, ok bool) {
	m := n.replicas.Meta()
	g, known := m.GalleryByName(tenant, gallery)
	for _, app := range m.Applications(tenant) {
		if known && app.Gallery == g.ID {
			return router.Access{Tenant: tenant, Gallery: g.ID, Application: app.ID}, true
		}
	}
	return a, false
}

// FillCases gives a gallery without cases a number of cases like c, if this node leads its home.
func (n *Node) FillCases(t testing.TB, gallery id.Gallery, number int, c job.Case) {
	t.Helper()
	g, _ := n.replicas.Meta().Gallery(gallery)
	cluster, _ := n.replicas.Meta().Cluster()
	home := metafsm.ShardsOf(g.ID, g.Shards, cluster.Shards)[0]
	group, ok := n.replicas.Group(home)
	if !ok || !group.IsLeader() {
		return
	}
	key, generation, err := n.DataKey(gallery)
	must.Do(t, err)
	name := router.ItemsName(g, job.Cases, home)
	propose := func(command []byte) {
		raw, err := group.Propose(t.Context(), command)
		must.Do(t, err)
		if a, err := shardfsm.BeginJobOp.Answer(raw); err != nil || a.Status != shardfsm.Done {
			t.Fatalf("fill cases: %v, %v", a.Status, err)
		}
	}
	propose(shardfsm.BeginJobOp.Encode(shardfsm.BeginJob{Name: name, Total: uint32(number), Kind: job.Cases, Time: c.Created}))
	for i := 0; i < number; {
		add := shardfsm.AddJob{Name: name, First: uint32(i), Time: c.Created}
		for ; i < number && len(add.Items) < 1000; i++ {
			c.ID = id.UUID{1, byte(i >> 8), byte(i)}
			add.Items = append(add.Items, job.SealCase(key, gallery, generation, &c))
		}
		propose(shardfsm.AddJobOp.Encode(add))
	}
	propose(shardfsm.OpenJobOp.Encode(shardfsm.OpenJob{Name: name, Time: c.Created}))
}
