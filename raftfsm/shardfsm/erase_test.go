package shardfsm

import (
	"context"
	"testing"
	"time"

	"facet/engine"
	"facet/internal/id"
	"facet/internal/must"
	"facet/raftfsm"
	"facet/raftfsm/fsmtest"
	"facet/shard"
	"facet/shard/seal"
)

// eraseWithin is Config.EraseWithin in these tests.
const eraseWithin = 2 * time.Minute

// planted proposes encrypted faces.
type planted struct {
	t     *testing.T
	group *raftfsm.Group
	key   *seal.Key
	ops   byte
}

func (p *planted) propose(c any) []byte {
	p.t.Helper()
	answer, err := p.group.Propose(context.Background(), encode(c))
	must.Do(p.t, err)
	return answer
}

// template returns a template that no other bytes in a folder equal.
func (p *planted) template(n byte) engine.Template {
	return engine.Template{float32(n) + .123, -.4567, .8910 + float32(n), -.1112, .1314}
}

// register returns the command that enrols subject n with its template.
func (p *planted) register(n byte) Register {
	p.ops++
	ref := shard.FaceRef{Gallery: testGallery, Generation: 1, Subject: id.Subject{UUID: id.UUID{9, n}}, Event: id.Event{UUID: id.UUID{8, n}}}
	return Register{
		EventWrite: EventWrite{
			Gallery: testGallery, Generation: 1, Op: id.Operation{99, p.ops}, Request: [16]byte{n},
			Subject: ref.Subject, Event: ref.Event, Time: testTime,
		},
		Sealed: shard.SealFace(p.key, ref, engine.Face{Template: p.template(n)}),
	}
}

func erasedInTime(t *testing.T, enrol, erase func(p *planted)) {
	dir, m := t.TempDir(), New(newTable(t), testArena)
	g := openGroup(t, dir, m, func(cfg *raftfsm.Config) { cfg.EraseWithin = eraseWithin })
	settle(t, g)
	secret := []byte("a secret of thirty-two bytes ...")
	key, err := seal.NewKey(secret)
	must.Do(t, err)
	p := &planted{t: t, group: g, key: key}
	p.propose(Grant{Gallery: testGallery, Generation: 1, Total: 200})
	for n := range byte(50) {
		p.propose(p.register(100 + n))
	}
	enrol(p)
	must.Do(t, g.Snapshot())
	scan := fsmtest.NewScanner(p.template(1), secret)
	if found := scan.Files(t, dir); len(found) < 2 {
		t.Fatalf("the scan finds what is enrolled in %v only: it would not find what is erased", found)
	}
	erase(p)
	if found := scan.Files(t, dir); len(found) == 0 {
		t.Fatal("gone at once: the scan is no proof")
	}
	time.Sleep(eraseWithin)
	if found := scan.Files(t, dir); len(found) > 0 {
		t.Errorf("still there after %s: %v", eraseWithin, found)
	}
	if found := fsmtest.NewScanner(p.template(120), secret).Files(t, dir); len(found) == 0 {
		t.Error("another template is gone too")
	}
}

func TestErasedDataLeavesDiskInTime(t *testing.T) {
	f := func(name string, enrol, erase func(p *planted)) {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) { erasedInTime(t, enrol, erase) })
		})
	}
	enrol := func(p *planted) { p.propose(p.register(1)) }
	f("a subject", enrol, func(p *planted) {
		p.propose(Unregister{Gallery: testGallery, Generation: 1, Op: id.Operation{1, 1}, Time: testTime, Subject: id.Subject{UUID: id.UUID{9, 1}}})
	})
	f("a replaced face", enrol, func(p *planted) {
		ref := shard.FaceRef{Gallery: testGallery, Generation: 1, Subject: id.Subject{UUID: id.UUID{9, 1}}, Event: id.Event{UUID: id.UUID{8, 1}}, Revision: 1}
		p.propose(ReplaceEvent{
			EventWrite: EventWrite{
				Gallery: testGallery, Generation: 1, Op: id.Operation{1, 2},
				Subject: ref.Subject, Event: ref.Event, Time: testTime,
			},
			Revision: 1, Sealed: shard.SealFace(p.key, ref, engine.Face{Template: p.template(2)}),
		})
	})
	f("a gallery", enrol, func(p *planted) {
		p.propose(Fence{Gallery: testGallery, Generation: 2})
		p.propose(Purge{Gallery: testGallery, Generation: 2, Max: 1000})
		other := p.register(120)
		other.Generation = 2
		p.propose(Grant{Gallery: testGallery, Generation: 2, Total: 10})
		p.propose(other)
	})
	f("a pending event", func(p *planted) {
		c := p.register(1)
		c.Pending = true
		p.propose(c)
	}, func(p *planted) {
		p.propose(Withdraw{Gallery: testGallery, Generation: 1, Subject: id.Subject{UUID: id.UUID{9, 1}}, Event: id.Event{UUID: id.UUID{8, 1}}, Time: testTime})
	})
}
