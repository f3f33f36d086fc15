package replicas

import (
	"testing"

	"facet/engine"
	"facet/engine/score"
	"facet/internal/id"
	"facet/internal/must"
	"facet/internal/settings"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
	"facet/shard"
	"facet/shard/kernel"
	"facet/shard/seal"
)

// The estimate counts the templates of subjects from the moment that meta has the setting, before
// any search or warmer makes them.
func TestMemoryCountsMeansAtOnce(t *testing.T) {
	t.Parallel()
	table, err := score.NewTable([]score.Point{{Cosine: -1}, {Cosine: score.Same, Score: score.Max}, {Cosine: 1, Score: score.Max}})
	must.Do(t, err)
	key, err := seal.NewKey(make([]byte, seal.KeyBytes))
	must.Do(t, err)
	tenant, gallery := id.Tenant{UUID: id.UUID{1}}, id.Gallery{UUID: id.UUID{2}}
	r := &Replicas{state: metafsm.New(), shards: map[id.Shard]hosted{1: {state: shardfsm.New(table, kernel.NewArena(0))}}}
	index := uint64(0)
	apply := func(cmd []byte) {
		index++
		r.state.Apply(index, cmd)
	}
	apply(metafsm.CreateTenantOp.Encode(metafsm.CreateTenant{Write: metafsm.Write{Op: id.Operation{1}}, Tenant: metafsm.Tenant{ID: tenant, Name: "bank"}}))
	apply(metafsm.CreateGalleryOp.Encode(metafsm.CreateGallery{
		Write:       metafsm.Write{Op: id.Operation{2}},
		Gallery:     metafsm.Gallery{ID: gallery, Tenant: tenant, Gallery: settings.Gallery{Name: "staff", Size: 100}, Shards: 1, Generation: 1, WrappedKey: []byte{1}},
		Application: metafsm.Application{ID: id.Application{UUID: id.UUID{3}}, Tenant: tenant, Gallery: gallery, KeyMAC: [32]byte{1}, SealedKey: []byte{1}},
	}))
	s := r.shards[1].state.Shard()
	must.Do(t, s.Grant(shard.Grant{Gallery: gallery, Generation: 1, Total: 100}))
	for n := range byte(100) {
		e := shard.Event{Gallery: gallery, Generation: 1, Subject: id.Subject{UUID: id.UUID{1 + n/2}}, Event: id.Event{UUID: id.UUID{1 + n}}, Time: int64(n)}
		face := engine.Face{Template: make(engine.Template, 192)}
		face.Template[n] = 1
		e.Sealed = shard.SealFace(key, shard.FaceRef{Gallery: gallery, Generation: 1, Subject: e.Subject, Event: e.Event}, face)
		if n%2 == 0 {
			err = s.Put(e, shard.FreeSlots)
		} else {
			err = s.Add(e, shard.FreeSlots)
		}
		must.Do(t, err)
	}
	without := r.Memory()
	apply(metafsm.UpdateGalleryOp.Encode(metafsm.UpdateGallery{Write: metafsm.Write{Op: id.Operation{3}}, Tenant: tenant, Gallery: gallery, Change: settings.ChangeTo(settings.Gallery{SubjectTemplates: true}, "subjectTemplates")}))
	if with := r.Memory(); with < without+50*4*192 {
		t.Errorf("%d bytes with the templates of 50 subjects, %d without", with, without)
	}
	apply(metafsm.UpdateGalleryOp.Encode(metafsm.UpdateGallery{Write: metafsm.Write{Op: id.Operation{4}}, Tenant: tenant, Gallery: gallery, Change: settings.ChangeTo(settings.Gallery{}, "subjectTemplates")}))
	if off := r.Memory(); off != without {
		t.Errorf("%d bytes when the setting is off again, %d before", off, without)
	}
}
