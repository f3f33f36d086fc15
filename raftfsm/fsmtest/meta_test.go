package fsmtest_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"facet/internal/id"
	"facet/internal/must"
	"facet/internal/settings"
	"facet/raftfsm"
	"facet/raftfsm/command"
	"facet/raftfsm/fsmtest"
	"facet/raftfsm/metafsm"
)

// There are few ids, names and keys, so that they collide often.
func tenantID(n int) id.Tenant           { return id.Tenant{UUID: id.UUID{0xd, byte(n)}} }
func applicationID(n int) id.Application { return id.Application{UUID: id.UUID{0xe, byte(n)}} }

// metaWorld generates commands and the model's answers to them.
type metaWorld struct {
	*rand.Rand
	model *metaModel
	time  int64
	// sent holds the commands so far.
	sent  []func() []byte
	check []func(t *testing.T, answer []byte)
	// backup is the newest restored backup, or nil. backups counts them.
	backup  *metaBackup
	backups int
	macs    int // the number of MACs under other keys
}

// expect records the expected answer to the next command.
func expect[T any](w *metaWorld, parse func([]byte) (T, error), want T) {
	w.check = append(w.check, func(t *testing.T, answer []byte) {
		t.Helper()
		got, err := parse(answer)
		must.Do(t, err)
		if !reflect.DeepEqual(want, got) {
			t.Fatalf("answer (-want +got):\n%s", cmp.Diff(want, got))
		}
	})
}

// send records the model's answer to a command and encodes the command. The world may send
// it again later, as a retry.
func send[C, A any](w *metaWorld, op command.Op[C, A], c C, model func(C) A) []byte {
	again := func() []byte {
		expect(w, op.Answer, model(c))
		return op.Encode(c)
	}
	w.sent = append(w.sent, again)
	return again()
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
		Op: id.Operation{byte(w.IntN(250))}, Request: [16]byte{byte(w.IntN(8) / 7)}, Keyed: w.IntN(2) == 0, Time: w.time,
	}
}

func (w *metaWorld) application() metafsm.Application {
	return metafsm.Application{
		ID: applicationID(w.IntN(60)), Tenant: tenantID(w.IntN(4)), Gallery: galleryID(w.IntN(20)),
		KeyMAC: [32]byte{byte(w.IntN(60))}, SealedKey: []byte{1, 2}, Application: random[settings.Application](w),
	}
}

func (w *metaWorld) gallery() metafsm.Gallery {
	return metafsm.Gallery{
		ID: galleryID(w.IntN(20)), Tenant: tenantID(w.IntN(4)), Gallery: w.gallerySettings(uint32(1 + w.IntN(100))),
		Shards: 1 + w.IntN(2), Generation: 1, Epoch: 1, WrappedKey: []byte{3}, IDKey: [32]byte{4},
	}
}

func (w *metaWorld) gallerySettings(size uint32) settings.Gallery {
	g := random[settings.Gallery](w)
	g.Name, g.Size = fmt.Sprint("gallery ", w.IntN(6)), size
	return g
}

// random returns settings of which each has one of two or three values.
func random[T any](w *metaWorld) (t T) {
	for _, field := range reflect.ValueOf(&t).Elem().Fields() {
		switch field.Kind() {
		case reflect.String:
			field.SetString("text"[:4*w.IntN(2)])
		case reflect.Bool:
			field.SetBool(w.IntN(2) == 0)
		case reflect.Float64:
			field.SetFloat(float64(w.IntN(3)))
		case reflect.Uint8, reflect.Uint32:
			field.SetUint(uint64(w.IntN(2)))
		default:
			field.SetInt(int64(w.IntN(3)))
		}
	}
	return t
}

// some returns a change of some settings to those of to.
func some[T any](w *metaWorld, to T) settings.Change[T] {
	names := slices.DeleteFunc(settings.Names[T](), func(string) bool { return w.IntN(3) > 0 })
	return settings.ChangeTo(to, names...)
}

// someGallery returns a gallery, mostly one of the model.
func (w *metaWorld) someGallery() metafsm.Gallery {
	if n := len(w.model.galleries); n > 0 && w.IntN(10) > 0 {
		return w.model.galleries[w.IntN(n)]
	}
	return w.gallery()
}

func (w *metaWorld) someApplication() metafsm.Application {
	if n := len(w.model.applications); n > 0 && w.IntN(10) > 0 {
		return w.model.applications[w.IntN(n)]
	}
	return w.application()
}

func (w *metaWorld) found() []byte {
	m := w.model
	switch w.IntN(5) {
	case 0:
		c := metafsm.Found{Cluster: metafsm.Cluster{Shards: 4, Replicas: 3, Pack: "p", Created: int64(w.IntN(100))}}
		return send(w, metafsm.FoundOp, c, m.found)
	case 1:
		c := metafsm.PutShards{Previous: uint64(w.IntN(4))}
		for s := range w.IntN(3) {
			c.Shards = append(c.Shards, metafsm.ShardVoters{Shard: id.Shard(s + 1), Voters: []id.Member{"a", "b"}[:1+w.IntN(2)], Began: int64(w.IntN(2))})
		}
		return send(w, metafsm.PutShardsOp, c, m.putShards)
	case 2:
		c := metafsm.PutAccessKey{Key: metafsm.AccessKey{
			ID: fmt.Sprint("key ", w.IntN(5)), Tenant: tenantID(w.IntN(4)), Role: 1, SealedSecret: []byte{byte(w.IntN(9))},
			Created: int64(w.IntN(9)), State: metafsm.KeyState(w.IntN(2)), Ends: int64(w.IntN(3)), Used: int64(w.IntN(2)),
		}}
		if w.IntN(2) == 0 {
			c.Key.Holder, c.Key.Galleries = "door", []id.Gallery{w.someGallery().ID}
			c.Key.Networks = []string{"10.0.0.0/8"}
		}
		return send(w, metafsm.PutAccessKeyOp, c, m.putAccessKey)
	case 3:
		var c metafsm.NoteKeyUses
		for range w.IntN(3) {
			c.Uses = append(c.Uses, metafsm.KeyUse{Key: fmt.Sprint("key ", w.IntN(6)), At: int64(w.IntN(9))})
		}
		return send(w, metafsm.NoteKeyUsesOp, c, m.noteKeyUses)
	default:
		c := metafsm.DeleteAccessKey{Tenant: tenantID(w.IntN(4)), Key: fmt.Sprint("key ", w.IntN(5))}
		return send(w, metafsm.DeleteAccessKeyOp, c, m.deleteAccessKey)
	}
}

func (w *metaWorld) create() []byte {
	m := w.model
	switch w.IntN(8) {
	case 0, 1:
		c := metafsm.CreateTenant{Write: w.write(), Tenant: metafsm.Tenant{ID: tenantID(w.IntN(4)), Name: fmt.Sprint("tenant ", w.IntN(4))}}
		return send(w, metafsm.CreateTenantOp, c, m.createTenant)
	case 2, 3:
		c := metafsm.CreateApplication{Write: w.write(), Application: w.application()}
		if w.IntN(2) == 0 {
			g := w.someGallery()
			c.Application.Tenant, c.Application.Gallery = g.Tenant, g.ID
		}
		return send(w, metafsm.CreateApplicationOp, c, m.createApplication)
	default:
		c := metafsm.CreateGallery{Write: w.write(), Gallery: w.gallery(), Application: w.application()}
		return send(w, metafsm.CreateGalleryOp, c, m.createGallery)
	}
}

func (w *metaWorld) change() []byte {
	m, g, a := w.model, w.someGallery(), w.someApplication()
	switch w.IntN(8) {
	case 0, 1, 2:
		c := metafsm.UpdateGallery{
			Write: w.write(), Tenant: g.Tenant, Gallery: g.ID, Shards: 1 + w.IntN(4),
			Change: some(w, w.gallerySettings(g.Size+uint32(w.IntN(40))-10)),
		}
		if w.IntN(4) == 0 {
			c.IfMatch = w.someGallery().ETag()
		}
		return send(w, metafsm.UpdateGalleryOp, c, m.updateGallery)
	case 3:
		c := metafsm.DeleteGallery{Write: w.write(), Tenant: g.Tenant, Gallery: g.ID}
		if w.IntN(8) == 0 {
			c.Tenant = tenantID(w.IntN(4))
		}
		return send(w, metafsm.DeleteGalleryOp, c, m.deleteGallery)
	case 4:
		c := metafsm.ForgetGallery{Gallery: g.ID, Generation: g.Generation + uint32(w.IntN(8)/7)}
		return send(w, metafsm.ForgetGalleryOp, c, m.forgetGallery)
	case 5, 6:
		c := metafsm.UpdateApplication{
			Write: w.write(), Tenant: a.Tenant, Application: a.ID, Change: some(w, random[settings.Application](w)),
		}
		if w.IntN(4) == 0 {
			c.IfMatch = w.someApplication().ETag()
		}
		return send(w, metafsm.UpdateApplicationOp, c, m.updateApplication)
	default:
		c := metafsm.DeleteApplication{Write: w.write(), Tenant: a.Tenant, Application: a.ID}
		return send(w, metafsm.DeleteApplicationOp, c, m.deleteApplication)
	}
}

func (w *metaWorld) slots() []byte {
	m, g := w.model, w.someGallery()
	generation, shard := g.Generation+uint32(w.IntN(20)/19), id.Shard(1+w.IntN(4))
	of := m.grants[g.ID][shard]
	switch w.IntN(8) {
	case 0, 1:
		c := metafsm.Reclaim{Gallery: g.ID, Generation: generation, Shard: shard, Returned: of.Reclaimed + uint32(w.IntN(20))}
		return send(w, metafsm.ReclaimOp, c, m.reclaim)
	case 2:
		c := metafsm.Settle{Gallery: g.ID, Generation: generation, Epoch: g.Epoch - uint32(w.IntN(4)/3)}
		return send(w, metafsm.SettleOp, c, m.settle)
	default:
		c := metafsm.Grant{
			Gallery: g.ID, Generation: generation, Shard: shard, Have: of.Total + uint32(w.IntN(3)) - min(1, of.Total), Want: uint32(w.IntN(60)),
		}
		return send(w, metafsm.GrantOp, c, m.grant)
	}
}

func (w *metaWorld) tag() []byte {
	m, g := w.model, w.someGallery()
	name, to := fmt.Sprint("tag ", w.IntN(5)), fmt.Sprint("tag ", w.IntN(5))
	switch w.IntN(4) {
	case 0, 1:
		c := metafsm.CreateTag{Write: w.write(), Gallery: g.ID, Name: name}
		return send(w, metafsm.CreateTagOp, c, func(c metafsm.CreateTag) metafsm.TagAnswer {
			return m.changeTags(c.Write, "create tag", c.Gallery, func(t *modelTags) (metafsm.Status, uint32) { return t.create(name) })
		})
	case 2:
		c := metafsm.RenameTag{Write: w.write(), Gallery: g.ID, From: name, To: to}
		return send(w, metafsm.RenameTagOp, c, func(c metafsm.RenameTag) metafsm.TagAnswer {
			return m.changeTags(c.Write, "rename tag", c.Gallery, func(t *modelTags) (metafsm.Status, uint32) { return t.rename(name, to) })
		})
	default:
		c := metafsm.DeleteTag{Write: w.write(), Gallery: g.ID, Name: name}
		return send(w, metafsm.DeleteTagOp, c, func(c metafsm.DeleteTag) metafsm.TagAnswer {
			return m.changeTags(c.Write, "delete tag", c.Gallery, func(t *modelTags) (metafsm.Status, uint32) { return t.delete(name) })
		})
	}
}

func (w *metaWorld) next() []byte {
	if n := len(w.sent); n > 0 && w.IntN(8) == 0 {
		return w.sent[max(0, n-1-w.IntN(30))]()
	}
	switch n := w.IntN(29); {
	case n < 2:
		return w.found()
	case n == 28:
		return w.rekey()
	case n >= 24 && w.IntN(4) == 0:
		return w.setTenant()
	case n >= 24 && w.IntN(6) == 0:
		return w.tenantState()
	case n >= 24:
		return w.load()
	case n >= 20:
		return w.node()
	case n < 9:
		return w.create()
	case n < 12:
		return w.change()
	case n < 15:
		return w.tag()
	default:
		return w.slots()
	}
}

func TestMetaReplicasMatchModel(t *testing.T) {
	t.Parallel()
	eachSeed(t, func(t *testing.T, seed uint64) {
		t.Helper()
		r := rand.New(rand.NewPCG(seed, 2))
		w := &metaWorld{Rand: r, time: 1_700_000_000_000, model: newMetaModel()}
		var commands [][]byte
		if r.IntN(2) == 0 {
			commands = append(commands, send(w, metafsm.RaiseLevelOp, metafsm.RaiseLevel{Level: uint32(knownLevel)}, w.model.raiseLevel))
		}
		for range 60 + r.IntN(100) {
			commands = append(commands, w.next())
		}
		defer func() {
			if t.Failed() {
				t.Logf("seed %d", seed)
			}
		}()
		machines := fsmtest.Run(t, fsmtest.Case{
			Rand: r, New: func() raftfsm.Machine { return metafsm.NewKnowing(uint32(knownLevel)) }, Commands: commands,
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
	m.compareStates(t, replica, got)
	same(t, replica, "shard map", m.shards, got.Shards())
	same(t, replica, "nodes", m.sortedNodes(), got.Nodes())
	same(t, replica, "level", max(metafsm.LevelFirst, m.level), got.Level())
	restoration, some := got.Restoration()
	same(t, replica, "there is a restoration", m.restoration != nil, some)
	if some {
		same(t, replica, "restoration", *m.restoration, restoration)
	}
	deleting := []metafsm.Gallery{}
	for _, tenant := range m.tenants {
		galleries, applications := []metafsm.Gallery{}, []metafsm.Application{}
		for _, g := range m.galleries {
			if g.Tenant == tenant.ID && !g.Deleting {
				galleries = append(galleries, g)
			}
		}
		for _, a := range m.applications {
			if a.Tenant == tenant.ID {
				applications = append(applications, a)
			}
		}
		same(t, replica, "galleries", galleries, got.Galleries(tenant.ID))
		same(t, replica, "applications", applications, got.Applications(tenant.ID))
		same(t, replica, "used quotas", m.used(tenant.ID), got.Used()[tenant.ID])
	}
	for _, g := range m.galleries {
		if g.Deleting {
			deleting = append(deleting, g)
		}
	}
	same(t, replica, "galleries that are being deleted", deleting, got.Deleting())
	for _, k := range m.keys {
		key, ok := got.AccessKey(k.ID)
		if k.State == metafsm.KeyRevoked {
			k = metafsm.AccessKey{}
		}
		same(t, replica, "access key", k, key)
		same(t, replica, "access key is live", k.ID != "", ok)
	}
	for n := range 60 {
		var want metafsm.Application
		for _, a := range m.applications {
			if a.KeyMAC == [32]byte{byte(n)} {
				want = a
			}
		}
		byMAC, ok := got.ApplicationByMAC([32]byte{byte(n)})
		same(t, replica, "application by MAC", want, byMAC)
		same(t, replica, "there is an application by MAC", !want.ID.IsZero(), ok)
	}
	for _, g := range m.galleries {
		m.compareGallery(t, replica, got, g)
	}
}

func (m *metaModel) compareGallery(t *testing.T, replica int, got *metafsm.Machine, g metafsm.Gallery) {
	t.Helper()
	byName, ok := got.GalleryByName(g.Tenant, g.Name)
	byID, _ := got.Gallery(g.ID)
	if g.Deleting {
		same(t, replica, "a gallery that is being deleted is known", false, ok)
		same(t, replica, "its grants", 0, len(got.Grants(g.ID)))
		same(t, replica, "its tags", 0, len(got.Tags(g.ID)))
		return
	}
	same(t, replica, "gallery by name", g, byName)
	same(t, replica, "gallery by id", g, byID)
	var sum uint32
	for _, of := range got.Grants(g.ID) {
		same(t, replica, "grant", m.grants[g.ID][of.Shard], of)
		sum += of.Slots()
	}
	same(t, replica, "free slots", g.Size-sum, got.FreeSlots(g.ID))
	if sum > g.Size {
		t.Fatalf("replica %d: %d slots granted of %d", replica, sum, g.Size)
	}
	tags := m.tags[g.ID]
	if tags == nil {
		tags = &modelTags{}
	}
	same(t, replica, "tags", append([]metafsm.Tag{}, tags.live...), append([]metafsm.Tag{}, got.Tags(g.ID)...))
	for n := range 5 {
		var want uint32
		if i := tags.find(fmt.Sprint("tag ", n)); i >= 0 {
			want = tags.live[i].Identity
		}
		identity, ok := got.TagIdentity(g.ID, fmt.Sprint("tag ", n))
		same(t, replica, "tag", want, identity)
		same(t, replica, "tag is known", want > 0, ok)
	}
}
