package fsmtest_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"facet/internal/id"
	"facet/internal/settings"
	"facet/raftfsm"
	"facet/raftfsm/command"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
)

// slotWorld is meta and the shards of one gallery. Messages between them are lost, repeated
// or late, and machines restart from their snapshots.
type slotWorld struct {
	*rand.Rand
	t      *testing.T
	meta   *metafsm.Machine
	shards []*shardfsm.Machine
	size   uint32
	time   int64
	events int
	// grants and reclaims are undelivered answers with totals.
	grants   []slotMessage
	reclaims []slotMessage
}

type slotMessage struct {
	shard int
	total uint32
}

var slotGallery = galleryID(1)

func newSlotWorld(t *testing.T, seed uint64) *slotWorld {
	t.Helper()
	w := &slotWorld{Rand: rand.New(rand.NewPCG(seed, 3)), t: t, meta: metafsm.New(), time: 1_700_000_000_000}
	w.size = uint32(1 + w.IntN(40))
	for range 3 {
		w.shards = append(w.shards, shardfsm.New(table, arena))
	}
	answerTo(w, w.meta.Apply, metafsm.CreateTenantOp, metafsm.CreateTenant{
		Write: metafsm.Write{Op: id.Operation{1}}, Tenant: metafsm.Tenant{ID: tenantID(1), Name: "t"},
	})
	answerTo(w, w.meta.Apply, metafsm.CreateGalleryOp, metafsm.CreateGallery{
		Write:       metafsm.Write{Op: id.Operation{2}},
		Gallery:     metafsm.Gallery{ID: slotGallery, Tenant: tenantID(1), Gallery: settings.Gallery{Name: "g", Size: w.size}, Shards: 3, Generation: 1, Epoch: 1},
		Application: metafsm.Application{ID: applicationID(1)},
	})
	return w
}

// answerTo applies a command to one machine.
func answerTo[C, A any](w *slotWorld, apply func(uint64, []byte) []byte, op command.Op[C, A], c C) A {
	w.t.Helper()
	a, err := op.Answer(apply(1, op.Encode(c)))
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

func (w *slotWorld) register(s int, recycle bool) shardfsm.Status {
	w.events++
	return answerTo(w, w.shards[s].Apply, shardfsm.RegisterOp, shardfsm.Register{
		EventWrite: shardfsm.EventWrite{
			Gallery: slotGallery, Generation: 1, Op: id.Operation{9, byte(w.events >> 8), byte(w.events)},
			Subject: subjectID(w.events), Event: eventID(w.events), Time: w.time,
		},
		Recycle: recycle, Pending: w.IntN(4) == 0, Sealed: []byte{1},
	}).Status
}

func (w *slotWorld) replace(s int) {
	of := subjectID(1 + w.IntN(w.events+1))
	events, err := w.shards[s].Shard().Events(slotGallery, 1, of)
	if err != nil || len(events) == 0 {
		return
	}
	oldest := events[0]
	w.events++
	a := answerTo(w, w.shards[s].Apply, shardfsm.ReplaceEventOp, shardfsm.ReplaceEvent{
		EventWrite: shardfsm.EventWrite{
			Gallery: slotGallery, Generation: 1, Op: id.Operation{9, byte(w.events >> 8), byte(w.events)},
			Subject: of, Event: oldest.Event, Time: w.time,
		},
		Revision: oldest.Revision + 1, Oldest: true, Sealed: []byte{2},
	})
	if a.Status != shardfsm.Done {
		w.t.Fatalf("an update of an event that is there: %v", a.Status)
	}
}

// ask makes meta grant slots to a shard and queues the answer.
func (w *slotWorld) ask(s int) {
	u := w.shards[s].Shard().Usage(slotGallery)
	a := answerTo(w, w.meta.Apply, metafsm.GrantOp, metafsm.Grant{
		Gallery: slotGallery, Generation: 1, Shard: id.Shard(s + 1), Have: u.Granted, Want: uint32(1 + w.IntN(12)),
	})
	w.grants = append(w.grants, slotMessage{s, a.Total})
}

// giveBack makes a shard return the slots beyond keep, never fewer than least, and repeats its
// grant. It queues the answer.
func (w *slotWorld) giveBack(s int, keep, least uint32) {
	u := w.shards[s].Shard().Usage(slotGallery)
	var granted uint32
	for _, of := range w.meta.Grants(slotGallery) {
		if of.Shard == id.Shard(s+1) {
			granted = of.Total
		}
	}
	a := answerTo(w, w.shards[s].Apply, shardfsm.ReturnSlotsOp, shardfsm.ReturnSlots{
		Gallery: slotGallery, Generation: 1, Granted: granted, Returned: u.Returned, Keep: keep, Recycle: least, Time: w.time,
	})
	w.reclaims = append(w.reclaims, slotMessage{s, a.Returned})
}

// deliver delivers one message, and may leave it in the queue for a second delivery.
func (w *slotWorld) deliver(from *[]slotMessage, arrive func(slotMessage)) {
	if len(*from) == 0 {
		return
	}
	i := w.IntN(len(*from))
	m := (*from)[i]
	if w.IntN(3) > 0 {
		*from = slices.Delete(*from, i, i+1)
	}
	if w.IntN(5) > 0 {
		arrive(m)
	}
}

func (w *slotWorld) granted(m slotMessage) {
	answerTo(w, w.shards[m.shard].Apply, shardfsm.GrantOp, shardfsm.Grant{Gallery: slotGallery, Generation: 1, Total: m.total})
}

func (w *slotWorld) reclaimed(m slotMessage) {
	a := answerTo(w, w.meta.Apply, metafsm.ReclaimOp, metafsm.Reclaim{
		Gallery: slotGallery, Generation: 1, Shard: id.Shard(m.shard + 1), Returned: m.total,
	})
	if a.Status != metafsm.Done {
		w.t.Fatalf("reclaim of %d from shard %d: %v", m.total, m.shard+1, a.Status)
	}
}

// restart replaces a machine by one from its snapshot.
func (w *slotWorld) restart() {
	var b bytes.Buffer
	if i := w.IntN(len(w.shards) + 1); i < len(w.shards) {
		f, _ := w.shards[i].Freeze()
		_, _ = f.WriteTo(&b)
		w.shards[i] = shardfsm.New(table, arena)
		w.restore(w.shards[i], b.Bytes())
		return
	}
	f, _ := w.meta.Freeze()
	_, _ = f.WriteTo(&b)
	w.meta = metafsm.New()
	w.restore(w.meta, b.Bytes())
}

func (w *slotWorld) restore(m raftfsm.Machine, snapshot []byte) {
	w.t.Helper()
	if err := m.Restore(bytes.NewReader(snapshot)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *slotWorld) step() {
	s := w.IntN(len(w.shards))
	w.time += int64(w.IntN(4000))
	switch n := w.IntN(16); {
	case n < 5:
		w.register(s, w.IntN(2) == 0)
	case n < 6:
		w.replace(s)
	case n < 8:
		answerTo(w, w.shards[s].Apply, shardfsm.UnregisterOp, shardfsm.Unregister{
			Gallery: slotGallery, Generation: 1, Op: id.Operation{8, byte(w.events), byte(w.time)}, Time: w.time,
			Subject: subjectID(1 + w.IntN(w.events+1)),
		})
	case n < 10:
		w.ask(s)
	case n < 11:
		w.giveBack(s, uint32(w.IntN(4)), uint32(w.IntN(3)))
	case n < 13:
		w.deliver(&w.grants, w.granted)
	case n < 15:
		w.deliver(&w.reclaims, w.reclaimed)
	default:
		w.restart()
	}
}

// check compares the used slots, and the slots that the shards may use now, with the size.
func (w *slotWorld) check(seed uint64, step int) {
	w.t.Helper()
	var used, slots uint32
	for _, m := range w.shards {
		u := m.Shard().Usage(slotGallery)
		used += u.Active + u.Deleted + u.Pending
		slots += u.Slots()
	}
	if used > slots || slots > w.size {
		w.t.Fatalf("seed %d, step %d: %d slots used, %d with the shards, of %d", seed, step, used, slots, w.size)
	}
}

// settle makes all other shards return their free slots, and fills one shard. No slot may
// be lost.
func (w *slotWorld) settle(seed uint64) {
	w.t.Helper()
	w.time += 2 * shardfsm.PendingMillis // all pending events have expired
	// Meta may not know all slots that the first shard returned.
	w.reclaimed(slotMessage{0, w.shards[0].Shard().Usage(slotGallery).Returned})
	var elsewhere uint32
	for s := 1; s < len(w.shards); s++ {
		w.giveBack(s, 0, w.size)
		u := w.shards[s].Shard().Usage(slotGallery)
		if u.Slots() != u.Active {
			w.t.Fatalf("seed %d: shard %d has returned what it can: %+v", seed, s+1, u)
		}
		w.reclaimed(slotMessage{s, u.Returned})
		elsewhere += u.Slots()
	}
	for range w.size + 1 {
		w.ask(0)
		w.granted(w.grants[len(w.grants)-1])
	}
	if u := w.shards[0].Shard().Usage(slotGallery); u.Slots()+elsewhere != w.size {
		w.t.Fatalf("seed %d: %d slots with the first shard, %d with the others, of %d", seed, u.Slots(), elsewhere, w.size)
	}
	for n := w.shards[0].Shard().Usage(slotGallery).Free(); n > 0; n-- {
		if status := w.register(0, false); status != shardfsm.Done {
			w.t.Fatalf("seed %d: %d slots are free: %v", seed, n, status)
		}
	}
	w.check(seed, -1)
}

func TestSlotsStayWithinGallerySize(t *testing.T) {
	t.Parallel()
	eachSeed(t, func(t *testing.T, seed uint64) {
		t.Helper()
		w := newSlotWorld(t, seed)
		for step := range 100 + w.IntN(200) {
			w.step()
			w.check(seed, step)
		}
		w.settle(seed)
	})
}
