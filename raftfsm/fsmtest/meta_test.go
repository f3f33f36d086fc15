package fsmtest_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"facet/internal/id"
	"facet/raftfsm"
	"facet/raftfsm/fsmtest"
	"facet/raftfsm/metafsm"
)

// Few ids, names and keys, so that they meet often.
func tenantID(n int) id.Tenant           { return id.Tenant{UUID: id.UUID{0xd, byte(n)}} }
func applicationID(n int) id.Application { return id.Application{UUID: id.UUID{0xe, byte(n)}} }

// metaModel says, with plain lists, what meta has to do.
type metaModel struct {
	clock        int64
	seq          uint64
	cluster      *metafsm.Cluster
	shards       metafsm.ShardMap
	tenants      []metafsm.Tenant
	keys         []metafsm.AccessKey
	galleries    []metafsm.Gallery
	applications []metafsm.Application
	granted      map[id.Gallery]map[id.Shard]uint32
	ops          []metaOp
}

type metaOp struct {
	write  metafsm.Write
	kind   string
	tenant id.Tenant
	answer any
}

func (m *metaModel) next() uint64 { m.seq++; return m.seq }

// once advances the clock and gives the first answer of an operation that is
// remembered, or Conflict.
func (m *metaModel) once(w metafsm.Write, kind string, tenant id.Tenant) (answer any, status metafsm.Status) {
	m.clock = max(m.clock, w.Time)
	m.ops = slices.DeleteFunc(m.ops, func(o metaOp) bool {
		keep := int64(10 * 60_000)
		if o.write.Keyed {
			keep = 24 * 3_600_000
		}
		return o.write.Time+keep < m.clock
	})
	for _, o := range m.ops {
		switch {
		case o.write.Op != w.Op:
		case o.kind == kind && o.tenant == tenant && o.write.Request == w.Request:
			return o.answer, metafsm.Replayed
		default:
			return nil, metafsm.Conflict
		}
	}
	return nil, 0
}

func (m *metaModel) remember(w metafsm.Write, kind string, tenant id.Tenant, answer any) {
	w.Time = m.clock
	m.ops = append(m.ops, metaOp{w, kind, tenant, answer})
}

func (m *metaModel) hasTenant(t id.Tenant) bool {
	return slices.ContainsFunc(m.tenants, func(x metafsm.Tenant) bool { return x.ID == t })
}

func (m *metaModel) taken(a metafsm.Application) bool {
	return slices.ContainsFunc(m.applications, func(x metafsm.Application) bool { return x.ID == a.ID || x.KeyMAC == a.KeyMAC })
}

func (m *metaModel) found(c metafsm.Found) metafsm.FoundAnswer {
	if m.cluster != nil {
		return metafsm.FoundAnswer{Status: metafsm.Exists, Cluster: *m.cluster}
	}
	m.cluster = &c.Cluster
	return metafsm.FoundAnswer{Status: metafsm.Done, Cluster: c.Cluster}
}

func (m *metaModel) putShards(c metafsm.PutShards) metafsm.PutShardsAnswer {
	same := m.shards.Epoch == c.Previous+1 && cmp.Equal(m.shards.Shards, c.Shards)
	if m.shards.Epoch != c.Previous && !same {
		return metafsm.PutShardsAnswer{Status: metafsm.StaleEpoch, Map: m.shards}
	}
	m.shards = metafsm.ShardMap{Epoch: c.Previous + 1, Shards: c.Shards}
	return metafsm.PutShardsAnswer{Status: metafsm.Done, Map: m.shards}
}

func (m *metaModel) createTenant(c metafsm.CreateTenant) metafsm.CreateTenantAnswer {
	first, status := m.once(c.Write, "tenant", id.Tenant{})
	if status == metafsm.Replayed {
		return metafsm.CreateTenantAnswer{Status: status, Tenant: first.(metafsm.Tenant)}
	}
	if status != 0 {
		return metafsm.CreateTenantAnswer{Status: status}
	}
	for _, t := range m.tenants {
		if t.Name == c.Tenant.Name {
			return metafsm.CreateTenantAnswer{Status: metafsm.Exists, Tenant: t}
		}
	}
	if m.hasTenant(c.Tenant.ID) {
		return metafsm.CreateTenantAnswer{Status: metafsm.Conflict}
	}
	c.Tenant.Seq = m.next()
	m.tenants = append(m.tenants, c.Tenant)
	m.remember(c.Write, "tenant", id.Tenant{}, c.Tenant)
	return metafsm.CreateTenantAnswer{Status: metafsm.Done, Tenant: c.Tenant}
}

func (m *metaModel) putAccessKey(c metafsm.PutAccessKey) metafsm.PutAccessKeyAnswer {
	if !m.hasTenant(c.Key.Tenant) {
		return metafsm.PutAccessKeyAnswer{Status: metafsm.UnknownTenant}
	}
	for i, k := range m.keys {
		if k.ID != c.Key.ID {
			continue
		}
		if k.Tenant != c.Key.Tenant {
			return metafsm.PutAccessKeyAnswer{Status: metafsm.Conflict}
		}
		m.keys = slices.Delete(m.keys, i, i+1)
		break
	}
	m.keys = append(m.keys, c.Key)
	return metafsm.PutAccessKeyAnswer{Status: metafsm.Done}
}

func (m *metaModel) createGallery(c metafsm.CreateGallery) metafsm.CreateGalleryAnswer {
	g, a := c.Gallery, c.Application
	first, status := m.once(c.Write, "gallery", g.Tenant)
	if status == metafsm.Replayed {
		answer := first.(metafsm.CreateGalleryAnswer)
		answer.Status = status
		return answer
	}
	if status != 0 {
		return metafsm.CreateGalleryAnswer{Status: status}
	}
	if !m.hasTenant(g.Tenant) {
		return metafsm.CreateGalleryAnswer{Status: metafsm.UnknownTenant}
	}
	for _, old := range m.galleries {
		if old.Tenant == g.Tenant && old.Name == g.Name {
			i := slices.IndexFunc(m.applications, func(a metafsm.Application) bool { return a.Gallery == old.ID })
			return metafsm.CreateGalleryAnswer{Status: metafsm.Exists, Gallery: old, Application: m.applications[i]}
		}
	}
	if m.taken(a) || slices.ContainsFunc(m.galleries, func(x metafsm.Gallery) bool { return x.ID == g.ID }) {
		return metafsm.CreateGalleryAnswer{Status: metafsm.Conflict}
	}
	g.Created, g.Seq = m.clock, m.next()
	a.Tenant, a.Gallery, a.Created, a.Seq = g.Tenant, g.ID, m.clock, m.next()
	m.galleries, m.applications = append(m.galleries, g), append(m.applications, a)
	answer := metafsm.CreateGalleryAnswer{Status: metafsm.Done, Gallery: g, Application: a}
	m.remember(c.Write, "gallery", g.Tenant, answer)
	return answer
}

func (m *metaModel) createApplication(c metafsm.CreateApplication) metafsm.CreateApplicationAnswer {
	a := c.Application
	first, status := m.once(c.Write, "application", a.Tenant)
	switch {
	case status == metafsm.Replayed:
		return metafsm.CreateApplicationAnswer{Status: status, Application: first.(metafsm.Application)}
	case status != 0:
		return metafsm.CreateApplicationAnswer{Status: status}
	case !slices.ContainsFunc(m.galleries, func(g metafsm.Gallery) bool { return g.ID == a.Gallery && g.Tenant == a.Tenant }):
		return metafsm.CreateApplicationAnswer{Status: metafsm.UnknownGallery}
	case m.taken(a):
		return metafsm.CreateApplicationAnswer{Status: metafsm.Conflict}
	}
	a.Created, a.Seq = m.clock, m.next()
	m.applications = append(m.applications, a)
	m.remember(c.Write, "application", a.Tenant, a)
	return metafsm.CreateApplicationAnswer{Status: metafsm.Done, Application: a}
}

func (m *metaModel) grant(c metafsm.Grant) metafsm.GrantAnswer {
	i := slices.IndexFunc(m.galleries, func(g metafsm.Gallery) bool { return g.ID == c.Gallery })
	switch {
	case i < 0:
		return metafsm.GrantAnswer{Status: metafsm.UnknownGallery}
	case m.galleries[i].Generation != c.Generation:
		return metafsm.GrantAnswer{Status: metafsm.StaleGeneration}
	}
	of := m.granted[c.Gallery]
	if of == nil {
		of = map[id.Shard]uint32{}
		m.granted[c.Gallery] = of
	}
	free := m.galleries[i].Size
	for _, n := range of {
		free -= n
	}
	if of[c.Shard] <= c.Have {
		of[c.Shard] += min(c.Want, free)
	}
	return metafsm.GrantAnswer{Status: metafsm.Done, Total: of[c.Shard]}
}

// metaWorld makes commands and what the model answers to them.
type metaWorld struct {
	*rand.Rand
	model *metaModel
	time  int64
	check []func(t *testing.T, answer []byte)
}

// expect notes what the next command has to answer.
func expect[T any](w *metaWorld, parse func([]byte) (T, error), want T) {
	w.check = append(w.check, func(t *testing.T, answer []byte) {
		t.Helper()
		got, err := parse(answer)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(want, got) {
			t.Fatalf("answer (-want +got):\n%s", cmp.Diff(want, got))
		}
	})
}

func (w *metaWorld) write() metafsm.Write {
	switch w.IntN(30) {
	case 0:
		w.time += 11 * 60_000
	case 1:
		w.time += 25 * 3_600_000
	default:
		w.time += int64(w.IntN(2000)) - 500
	}
	return metafsm.Write{
		Op: id.Operation{byte(w.IntN(40))}, Request: [16]byte{byte(w.IntN(8) / 7)}, Keyed: w.IntN(2) == 0, Time: w.time,
	}
}

func (w *metaWorld) application() metafsm.Application {
	return metafsm.Application{
		ID: applicationID(w.IntN(60)), Tenant: tenantID(w.IntN(4)), Gallery: galleryID(w.IntN(20)), Name: "app",
		KeyMAC: [32]byte{byte(w.IntN(60))}, SealedKey: []byte{1, 2}, MinimumQuality: .45,
		VerifyThreshold: 7000, GuardThreshold: 7000, Guard: w.IntN(2) == 0,
	}
}

func (w *metaWorld) gallery() metafsm.Gallery {
	return metafsm.Gallery{
		ID: galleryID(w.IntN(20)), Tenant: tenantID(w.IntN(4)), Name: fmt.Sprint("gallery ", w.IntN(6)),
		Description: "a gallery", Size: uint32(1 + w.IntN(100)), Shards: 2, Generation: 1, Epoch: 1,
		WrappedKey: []byte{3}, IDKey: [32]byte{4},
	}
}

func (w *metaWorld) next() []byte {
	m := w.model
	switch w.IntN(20) {
	case 0:
		c := metafsm.Found{Cluster: metafsm.Cluster{Shards: 16, Replicas: 3, Pack: "p", Created: int64(w.IntN(100))}}
		expect(w, metafsm.ParseFoundAnswer, m.found(c))
		return c.Encode()
	case 1:
		c := metafsm.PutShards{Previous: uint64(w.IntN(4))}
		for s := range w.IntN(3) {
			c.Shards = append(c.Shards, metafsm.ShardVoters{Shard: id.Shard(s + 1), Voters: []id.Member{"a", "b"}[:1+w.IntN(2)]})
		}
		expect(w, metafsm.ParsePutShardsAnswer, m.putShards(c))
		return c.Encode()
	case 2, 3, 4:
		c := metafsm.CreateTenant{Write: w.write(), Tenant: metafsm.Tenant{ID: tenantID(w.IntN(4)), Name: fmt.Sprint("tenant ", w.IntN(4))}}
		expect(w, metafsm.ParseCreateTenantAnswer, m.createTenant(c))
		return c.Encode()
	case 5:
		c := metafsm.PutAccessKey{Key: metafsm.AccessKey{
			ID: fmt.Sprint("key ", w.IntN(5)), Tenant: tenantID(w.IntN(4)), Role: 1, SealedSecret: []byte{byte(w.IntN(9))},
		}}
		expect(w, metafsm.ParsePutAccessKeyAnswer, m.putAccessKey(c))
		return c.Encode()
	case 6, 7, 8, 9, 10:
		c := metafsm.CreateGallery{Write: w.write(), Gallery: w.gallery(), Application: w.application()}
		expect(w, metafsm.ParseCreateGalleryAnswer, m.createGallery(c))
		return c.Encode()
	case 11, 12, 13:
		c := metafsm.CreateApplication{Write: w.write(), Application: w.application()}
		expect(w, metafsm.ParseCreateApplicationAnswer, m.createApplication(c))
		return c.Encode()
	default:
		c := metafsm.Grant{
			Gallery: galleryID(w.IntN(20)), Generation: uint32(1 + w.IntN(20)/19), Shard: id.Shard(1 + w.IntN(3)),
			Have: uint32(w.IntN(60)), Want: uint32(w.IntN(60)),
		}
		expect(w, metafsm.ParseGrantAnswer, m.grant(c))
		return c.Encode()
	}
}

func TestReplicasOfMetaAgreeWithEachOtherAndTheModel(t *testing.T) {
	t.Parallel()
	eachSeed(t, func(t *testing.T, seed uint64) {
		t.Helper()
		r := rand.New(rand.NewPCG(seed, 2))
		w := &metaWorld{Rand: r, time: 1_700_000_000_000, model: &metaModel{granted: map[id.Gallery]map[id.Shard]uint32{}}}
		var commands [][]byte
		for range 60 + r.IntN(100) {
			commands = append(commands, w.next())
		}
		defer func() {
			if t.Failed() {
				t.Logf("seed %d", seed)
			}
		}()
		machines := fsmtest.Run(t, fsmtest.Case{
			Rand: r, New: func() raftfsm.Machine { return metafsm.New() }, Commands: commands,
			Answer: func(index uint64, answer []byte) { w.check[index-1](t, answer) },
		})
		for i, m := range machines {
			w.model.compare(t, i, m.(*metafsm.Machine))
		}
	})
}

// same fails when a machine's reads differ from the model's records.
func same(t *testing.T, replica int, what string, want, got any) {
	t.Helper()
	if !reflect.DeepEqual(want, got) {
		t.Fatalf("replica %d: %s (-want +got):\n%s", replica, what, cmp.Diff(want, got))
	}
}

func (m *metaModel) compare(t *testing.T, replica int, got *metafsm.Machine) {
	t.Helper()
	same(t, replica, "tenants", append([]metafsm.Tenant{}, m.tenants...), got.Tenants())
	same(t, replica, "shard map", m.shards, got.Shards())
	for _, tenant := range m.tenants {
		galleries := []metafsm.Gallery{}
		for _, g := range m.galleries {
			if g.Tenant == tenant.ID {
				galleries = append(galleries, g)
			}
		}
		same(t, replica, "galleries", galleries, got.Galleries(tenant.ID))
		applications := []metafsm.Application{}
		for _, a := range m.applications {
			if a.Tenant == tenant.ID {
				applications = append(applications, a)
			}
		}
		same(t, replica, "applications", applications, got.Applications(tenant.ID))
	}
	for _, k := range m.keys {
		key, _ := got.AccessKey(k.ID)
		same(t, replica, "access key", k, key)
	}
	for _, a := range m.applications {
		byMAC, _ := got.ApplicationByMAC(a.KeyMAC)
		same(t, replica, "application by MAC", a, byMAC)
	}
	for _, g := range m.galleries {
		byName, _ := got.GalleryByName(g.Tenant, g.Name)
		same(t, replica, "gallery by name", g, byName)
		var sum uint32
		for _, of := range got.Grants(g.ID) {
			same(t, replica, "grant", m.granted[g.ID][of.Shard], of.Total)
			sum += of.Total
		}
		if sum > g.Size {
			t.Fatalf("replica %d: %d slots granted of %d", replica, sum, g.Size)
		}
	}
}
