package fsmtest_test

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"facet/engine"
	"facet/engine/score"
	"facet/internal/codec"
	"facet/internal/id"
	"facet/internal/must"
	"facet/raftfsm"
	"facet/raftfsm/command"
	"facet/raftfsm/fsmtest"
	"facet/raftfsm/shardfsm"
	"facet/shard"
	"facet/shard/kernel"
	"facet/shard/seal"
)

const dim = 8

var table = func() *score.Table {
	t, err := score.NewTable([]score.Point{{Cosine: -1}, {Cosine: score.Same, Score: score.Max}, {Cosine: 1, Score: score.Max}})
	if err != nil {
		panic(err)
	}
	return t
}()

// arena is shared by all machines.
var arena = kernel.NewArena(0)

var galleryKey = func() *seal.Key {
	k, err := seal.NewKey(bytes.Repeat([]byte{7}, seal.KeyBytes))
	if err != nil {
		panic(err)
	}
	return k
}()

func galleryID(n int) id.Gallery { return id.Gallery{UUID: id.UUID{0xa, byte(n)}} }
func subjectID(n int) id.Subject { return id.Subject{UUID: id.UUID{0xb, byte(n >> 8), byte(n)}} }
func eventID(n int) id.Event     { return id.Event{UUID: id.UUID{0xc, byte(n >> 8), byte(n)}} }

// shardWorld generates commands and the model's answers to them.
type shardWorld struct {
	*rand.Rand
	model  *shardModel
	time   int64
	events int
	notes  int
	// enrolled and replaced are earlier writes, for retries. kinds belongs to enrolled.
	enrolled []shardfsm.Register
	kinds    []string
	replaced []shardfsm.ReplaceEvent
	// sealed maps operations to encrypted faces.
	sealed map[id.Operation][]byte
	check  []func(t *testing.T, answer []byte)
	backup *backup // the newest, or nil
}

func unit(r *rand.Rand) []float32 {
	v := make([]float32, dim)
	var norm float64
	for i := range v {
		v[i] = float32(r.NormFloat64())
		norm += float64(v[i]) * float64(v[i])
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(norm))
	}
	return v
}

// tick moves the clients' clocks, sometimes far or back.
func (w *shardWorld) tick() int64 {
	switch w.IntN(40) {
	case 0:
		w.time += 11 * 60_000
	case 1:
		w.time += 25 * 3_600_000
	case 2:
		return w.time - int64(w.IntN(5000))
	case 3, 4:
		w.time += 20_000
	default:
		w.time += int64(w.IntN(2000))
	}
	return w.time
}

// generation returns a gallery's generation, or sometimes another.
func (w *shardWorld) generation(g id.Gallery) uint32 {
	generation := max(1, w.model.floor[g])
	if sl := w.model.slices[g]; sl != nil {
		generation = sl.generation
	}
	switch w.IntN(50) {
	case 0:
		return generation + 1
	case 1:
		return generation - 1
	default:
		return generation
	}
}

func (w *shardWorld) gallery() id.Gallery {
	if w.IntN(16) == 0 {
		return galleryID(w.IntN(galleries))
	}
	return galleryID(w.IntN(restored))
}

func (w *shardWorld) tags() (tags []uint32) {
	for range w.IntN(3) {
		tags = append(tags, uint32(w.IntN(4)))
	}
	return tags
}

// seal returns an encrypted face for an operation. There are few different templates, so
// that scores are often equal.
func (w *shardWorld) seal(op id.Operation, ref shard.FaceRef) []byte {
	template := unit(rand.New(rand.NewPCG(uint64(w.IntN(12)), 1)))
	w.model.templates[op] = template
	w.sealed[op] = shard.SealFace(galleryKey, ref, engine.Face{Template: template})
	return w.sealed[op]
}

// pick returns a random active event of the model.
func (w *shardWorld) pick() (modelEvent, bool) {
	var active []modelEvent
	for _, e := range w.model.events {
		if !e.entry.Deleted {
			active = append(active, e)
		}
	}
	if len(active) == 0 {
		return modelEvent{gallery: w.gallery(), entry: shard.Entry{Subject: subjectID(1), Event: eventID(1)}}, false
	}
	return active[w.IntN(len(active))], true
}

func (w *shardWorld) newEnrolment() (kind string, c shardfsm.Register) {
	w.events++
	c = shardfsm.Register{
		EventWrite: shardfsm.EventWrite{
			Gallery: w.gallery(), Op: id.Operation{1, byte(w.events >> 8), byte(w.events)}, Request: [16]byte{byte(w.events)}, Keyed: w.IntN(2) == 0,
			Subject: subjectID(w.events), Event: eventID(w.events), Time: w.tick(),
		},
		Recycle: w.IntN(2) == 0, Pending: w.IntN(3) == 0, Tags: w.tags(), Expires: w.expires(),
	}
	kind = "register"
	if w.IntN(4) == 0 {
		of, _ := w.pick()
		kind, c.Gallery, c.Subject = "add", of.gallery, of.entry.Subject
	}
	if w.IntN(30) == 0 {
		c.Subject = subjectID(1 + w.IntN(w.events))
	}
	c.Share = w.share()
	c.Generation = w.generation(c.Gallery)
	c.Sealed = w.seal(c.Op, shard.FaceRef{Gallery: c.Gallery, Generation: c.Generation, Subject: c.Subject, Event: c.Event})
	switch {
	case kind == "register":
		c.Note, c.Claimed = w.note()
	case w.IntN(3) == 0:
		c.Source = subjectID(1 + w.IntN(w.events))
		if under := w.model.merges.under; len(under) > 0 && w.IntN(2) == 0 {
			c.Source = under[0].Source
		}
	}
	w.enrolled, w.kinds = append(w.enrolled, c), append(w.kinds, kind)
	return kind, c
}

func (w *shardWorld) enrol() []byte {
	kind, c := "", shardfsm.Register{}
	if n := len(w.enrolled); n > 0 && w.IntN(4) == 0 { // a retry, perhaps of another request
		i := max(0, n-1-w.IntN(10))
		kind, c = w.kinds[i], w.enrolled[i]
		c.Time = w.tick()
		c.Recycle, c.Pending = w.IntN(2) == 0, w.IntN(3) == 0
		switch w.IntN(10) {
		case 0, 1:
			c.Request[15]++
		case 2:
			c.Subject = w.elsewhere(c.Op, c.Time, c.Subject)
		}
	} else {
		kind, c = w.newEnrolment()
	}
	if kind == "add" {
		w.expectEvent(shardfsm.AddEventOp.Answer, c.Gallery, c.Op, w.model.enrol(kind, c))
		return shardfsm.AddEventOp.Encode(shardfsm.AddEvent{Register: c})
	}
	w.expectEvent(shardfsm.RegisterOp.Answer, c.Gallery, c.Op, w.model.enrol(kind, c))
	return shardfsm.RegisterOp.Encode(c)
}

// elsewhere returns another subject for an operation that is remembered at the given time.
// The face is encrypted for the first subject, so it must not be stored for the other.
func (w *shardWorld) elsewhere(op id.Operation, time int64, subject id.Subject) id.Subject {
	w.model.advance(time)
	if _, ok := w.model.find(op); ok {
		return subjectID(w.IntN(w.events))
	}
	return subject
}

func (w *shardWorld) replace() []byte {
	var c shardfsm.ReplaceEvent
	if n := len(w.replaced); n > 0 && w.IntN(5) == 0 {
		c = w.replaced[max(0, n-1-w.IntN(5))]
		c.Time = w.tick()
		if w.IntN(5) == 0 {
			c.Subject = w.elsewhere(c.Op, c.Time, c.Subject)
		}
	} else {
		of, _ := w.pick()
		w.events++
		c = shardfsm.ReplaceEvent{
			EventWrite: shardfsm.EventWrite{
				Gallery: of.gallery, Generation: w.generation(of.gallery), Op: id.Operation{3, byte(w.events >> 8), byte(w.events)}, Request: [16]byte{byte(w.events)}, Keyed: w.IntN(2) == 0,
				Subject: of.entry.Subject, Event: of.entry.Event, Time: w.tick(), Share: w.share(),
			},
			Tags: w.tags(), KeepTags: w.IntN(2) == 0, Revision: of.revision + 1, Oldest: w.IntN(2) == 0,
			Noted:   (len(of.note) > 0) == (w.IntN(12) > 0),
			Expires: w.expires(),
		}
		if of.note != nil || w.IntN(8) == 0 {
			c.Note, c.Claimed = w.note()
		}
		c.NoExpiry = c.Expires == 0 && w.IntN(2) == 0
		switch w.IntN(12) {
		case 0:
			c.Revision++
		case 1:
			c.Event = eventID(w.IntN(w.events))
		case 2:
			c.Subject = w.elsewhere(c.Op, c.Time, c.Subject)
		}
		c.Sealed = w.seal(c.Op, shard.FaceRef{
			Gallery: c.Gallery, Generation: c.Generation, Subject: c.Subject, Event: c.Event, Revision: c.Revision,
		})
		w.replaced = append(w.replaced, c)
	}
	if w.IntN(20) == 0 {
		c.Request[15]++
	}
	w.expectEvent(shardfsm.ReplaceEventOp.Answer, c.Gallery, c.Op, w.model.replace(c))
	return shardfsm.ReplaceEventOp.Encode(c)
}

// expectEvent records the expected answer to the next command. A replayed answer has the
// face of that operation, while the face is stored.
func (w *shardWorld) expectEvent(parse func([]byte) (shardfsm.RegisterAnswer, error), g id.Gallery, op id.Operation, want shardfsm.RegisterAnswer) {
	if want.Status == shardfsm.Replayed {
		if i := w.model.active(g, want.Subject, want.Event); i >= 0 && w.model.events[i].revision == want.Revision {
			want.Sealed = w.sealed[op]
		}
	}
	expectOf(w, parse, want)
}

func expectOf[T any](w *shardWorld, parse func([]byte) (T, error), want T) {
	w.check = append(w.check, func(t *testing.T, answer []byte) {
		t.Helper()
		got, err := parse(answer)
		must.Do(t, err)
		if !reflect.DeepEqual(want, got) {
			t.Fatalf("answer (-want +got):\n%s", cmp.Diff(want, got))
		}
	})
}

// propose encodes a command and records the expected answer.
func propose[C, A any](w *shardWorld, op command.Op[C, A], c C, want A) []byte {
	expectOf(w, op.Answer, want)
	return op.Encode(c)
}

func (w *shardWorld) slots() []byte {
	g := w.gallery()
	if w.IntN(3) > 0 {
		c := shardfsm.Grant{Gallery: g, Generation: w.generation(g), Total: w.model.usage(g).Returned + uint32(w.IntN(25))}
		return propose(w, shardfsm.GrantOp, c, w.model.grant(c))
	}
	u := w.model.usage(g)
	c := shardfsm.ReturnSlots{
		Gallery: g, Generation: w.generation(g), Granted: u.Granted + uint32(w.IntN(8)/7), Returned: u.Returned,
		Keep: uint32(w.IntN(4)), Recycle: uint32(w.IntN(4)), Time: w.tick(),
	}
	switch w.IntN(12) {
	case 0:
		c.Returned++
	case 1:
		c.Granted /= 2
	}
	return propose(w, shardfsm.ReturnSlotsOp, c, w.model.returnSlots(c))
}

func (w *shardWorld) rare() []byte {
	g := w.gallery()
	switch w.IntN(7) {
	case 0, 1:
		w.check = append(w.check, wantNoAnswer)
		return [][]byte{nil, {codec.Skippable | 9, 1, 0xa0}}[w.IntN(2)]
	case 2, 3:
		c := shardfsm.Widen{Gallery: g, Generation: w.generation(g), Epoch: uint32(w.IntN(5))}
		return propose(w, shardfsm.WidenOp, c, w.model.widen(c))
	case 4:
		c := shardfsm.Fence{Gallery: g, Generation: w.generation(g) + uint32(w.IntN(2))}
		return propose(w, shardfsm.FenceOp, c, w.model.fence(c))
	default:
		c := shardfsm.Purge{Gallery: g, Generation: w.generation(g), Max: uint32(w.IntN(4))}
		return propose(w, shardfsm.PurgeOp, c, w.model.purge(c))
	}
}

func (w *shardWorld) next() []byte {
	switch n := w.IntN(43); {
	case n >= 40:
		return w.expire()
	case n < 3:
		return w.rare()
	case n < 7:
		return w.slots()
	case n < 13:
		return w.remove()
	case n < 19:
		return w.replace()
	case n < 24:
		return w.settle()
	case n < 27:
		return w.load()
	case n < 29:
		return w.external()
	case n < 31:
		return w.merging()
	default:
		return w.enrol()
	}
}

func wantNoAnswer(t *testing.T, answer []byte) {
	t.Helper()
	if answer != nil {
		t.Fatalf("an empty or skipped command answers %x", answer)
	}
}

// averaging is a machine whose subjects have templates of their own after each command, or never.
// Replicas that derive them have the state of those that don't.
type averaging struct {
	*shardfsm.Machine
	on bool
}

func (m averaging) Apply(index uint64, cmd []byte) []byte {
	answer := m.Machine.Apply(index, cmd)
	m.Shard().Average(func(id.Gallery) bool { return m.on })
	return answer
}

func TestShardReplicasMatchModel(t *testing.T) {
	t.Parallel()
	eachSeed(t, func(t *testing.T, seed uint64) {
		t.Helper()
		r := rand.New(rand.NewPCG(seed, 1))
		w := &shardWorld{Rand: r, time: 1_700_000_000_000, model: newShardModel(), sealed: map[id.Operation][]byte{}}
		var commands [][]byte
		for range 60 + r.IntN(100) {
			commands = append(commands, w.next())
			for g := range galleries {
				if u := w.model.usage(galleryID(g)); u.Active+u.Deleted+u.Pending > u.Granted-u.Returned {
					t.Fatalf("seed %d: the model exceeds its slots: %+v", seed, u)
				}
			}
		}
		defer func() {
			if t.Failed() {
				t.Logf("seed %d", seed)
			}
		}()
		made := 0
		machines := fsmtest.Run(t, fsmtest.Case{
			Rand: r, New: func() raftfsm.Machine { made++; return averaging{shardfsm.New(table, arena), made%2 == 0} }, Commands: commands,
			Answer: func(index uint64, answer []byte) { w.check[index-1](t, answer) },
		})
		for i, m := range machines {
			m := m.(averaging).Machine
			for n := range 2 {
				want := max(w.model.taken(tenantID(n), true), w.model.taken(tenantID(n), false))
				if got := m.Taken()[tenantID(n)].Writes; got != want {
					t.Fatalf("replica %d: %d writes of tenant %d, want %d", i, got, n, want)
				}
			}
			w.compareMerges(t, i, m.Merges())
			w.compareExternals(t, i, m.Claims())
			for g := range galleries {
				w.compareGallery(t, i, m.Shard(), galleryID(g))
			}
		}
	})
}

// compareGallery compares a machine's reads of a gallery with the model.
func (w *shardWorld) compareGallery(t *testing.T, replica int, s *shard.Shard, g id.Gallery) {
	t.Helper()
	m := w.model
	if got, want := s.Usage(g), m.usage(g); got != want {
		t.Fatalf("replica %d: usage %+v, want %+v", replica, got, want)
	}
	p := s.ListEvents(g, 0, 1000, shard.Ascending)
	if list := m.list(g); !slices.Equal(list, p.Entries) || p.Total != len(p.Entries) {
		t.Fatalf("replica %d: total %d, list (-want +got):\n%s", replica, p.Total, cmp.Diff(list, p.Entries))
	}
	w.compareExpiry(t, replica, s, g)
	if floor := m.floor[g]; floor > 0 {
		if err := s.Check(g, floor-1); !errors.Is(err, shard.ErrGeneration) {
			t.Fatalf("replica %d: a fenced generation: got %v", replica, err)
		}
	}
	sl := m.slices[g]
	if sl == nil {
		return
	}
	for epoch := range uint32(5) {
		if err := s.CheckEpoch(g, sl.generation, epoch); errors.Is(err, shard.ErrEpoch) != (epoch < sl.epoch) {
			t.Fatalf("replica %d: epoch %d of %d: got %v", replica, epoch, sl.epoch, err)
		}
	}
	for n := range w.events + 1 {
		var want []shard.Active
		for _, i := range m.actives(g, subjectID(n)) {
			want = append(want, shard.Active{Event: m.events[i].entry.Event, Revision: m.events[i].revision, Tags: m.events[i].tags, Note: m.events[i].note, Time: m.events[i].entry.Time, Expires: m.events[i].expires})
		}
		got, err := s.Events(g, sl.generation, subjectID(n))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Fatalf("replica %d: %v, events of subject %d (-want +got):\n%s", replica, err, n, diff)
		}
	}
	w.compareSearches(t, replica, s, g)
}

func (w *shardWorld) compareSearches(t *testing.T, replica int, s *shard.Shard, g id.Gallery) {
	t.Helper()
	generation := w.model.slices[g].generation
	for range 4 {
		q := shard.Query{Probe: unit(w.Rand), Threshold: w.IntN(9000), Limit: 1 + w.IntN(6), Tags: w.tags()}
		got, err := s.Search(t.Context(), g, generation, galleryKey, q)
		if want := search(w.model.candidates(g), q); err != nil || !slices.Equal(got, want) {
			t.Fatalf("replica %d: search %+v: got %v, %v, want %v", replica, q, got, err, want)
		}
		got, err = s.SearchPending(t.Context(), g, generation, galleryKey, q)
		if want := search(w.model.pending(g), q); err != nil || !slices.Equal(got, want) {
			t.Fatalf("replica %d: search of what is pending %+v: got %v, %v, want %v", replica, q, got, err, want)
		}
	}
}
