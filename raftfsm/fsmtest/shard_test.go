package fsmtest_test

import (
	"bytes"
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
	"facet/raftfsm"
	"facet/raftfsm/fsmtest"
	"facet/raftfsm/shardfsm"
	"facet/shard"
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

// modelEvent is an event as the model keeps it: in one list, in log order.
type modelEvent struct {
	gallery  id.Gallery
	entry    shard.Entry
	tags     []uint32
	template []float32
}

type modelOp struct {
	kind    string
	gallery id.Gallery
	op      id.Operation
	request [16]byte
	keyed   bool
	time    int64
	subject id.Subject
	event   id.Event
}

// shardModel says, with plain lists, what a shard has to do.
type shardModel struct {
	clock      int64
	generation map[id.Gallery]uint32
	granted    map[id.Gallery]uint32
	events     []modelEvent
	ops        []modelOp
	templates  map[id.Event][]float32 // by event, as the generator sealed them
}

func (m *shardModel) count(g id.Gallery, deleted bool) (n uint32) {
	for _, e := range m.events {
		if e.gallery == g && e.entry.Deleted == deleted {
			n++
		}
	}
	return n
}

func (m *shardModel) advance(time int64) {
	m.clock = max(m.clock, time)
	m.ops = slices.DeleteFunc(m.ops, func(o modelOp) bool {
		keep := int64(10 * 60_000)
		if o.keyed {
			keep = 24 * 3_600_000
		}
		return o.time+keep < m.clock
	})
}

func (m *shardModel) stale(g id.Gallery, generation uint32) bool {
	known, ok := m.generation[g]
	return ok && known != generation
}

func (m *shardModel) find(op id.Operation) (modelOp, bool) {
	i := slices.IndexFunc(m.ops, func(o modelOp) bool { return o.op == op })
	if i < 0 {
		return modelOp{}, false
	}
	return m.ops[i], true
}

func (m *shardModel) subject(g id.Gallery, s id.Subject) int {
	return slices.IndexFunc(m.events, func(e modelEvent) bool {
		return e.gallery == g && e.entry.Subject == s && !e.entry.Deleted
	})
}

func (m *shardModel) grant(c shardfsm.Grant) shardfsm.GrantAnswer {
	if m.stale(c.Gallery, c.Generation) {
		return shardfsm.GrantAnswer{Status: shardfsm.StaleGeneration}
	}
	m.generation[c.Gallery] = c.Generation
	m.granted[c.Gallery] = max(m.granted[c.Gallery], c.Total)
	return shardfsm.GrantAnswer{Status: shardfsm.Done}
}

func (m *shardModel) register(c shardfsm.Register) shardfsm.RegisterAnswer {
	m.advance(c.Time)
	if m.stale(c.Gallery, c.Generation) {
		return shardfsm.RegisterAnswer{Status: shardfsm.StaleGeneration}
	}
	if o, ok := m.find(c.Op); ok {
		if o.kind != "register" || o.gallery != c.Gallery || o.request != c.Request {
			return shardfsm.RegisterAnswer{Status: shardfsm.Conflict}
		}
		return shardfsm.RegisterAnswer{Status: shardfsm.Replayed, Subject: o.subject, Event: o.event, Time: o.time}
	}
	active, deleted := m.count(c.Gallery, false), m.count(c.Gallery, true)
	switch {
	case m.subject(c.Gallery, c.Subject) >= 0:
		return shardfsm.RegisterAnswer{Status: shardfsm.Conflict}
	case active+deleted < m.granted[c.Gallery]:
	case c.Recycle && deleted > 0:
		i := slices.IndexFunc(m.events, func(e modelEvent) bool { return e.gallery == c.Gallery && e.entry.Deleted })
		m.events = slices.Delete(m.events, i, i+1)
	default:
		return shardfsm.RegisterAnswer{Status: shardfsm.NeedSlots}
	}
	m.events = append(m.events, modelEvent{
		gallery:  c.Gallery,
		entry:    shard.Entry{Subject: c.Subject, Event: c.Event, Time: m.clock},
		tags:     c.Tags,
		template: m.templates[c.Event],
	})
	m.ops = append(m.ops, modelOp{"register", c.Gallery, c.Op, c.Request, c.Keyed, m.clock, c.Subject, c.Event})
	return shardfsm.RegisterAnswer{Status: shardfsm.Done, Subject: c.Subject, Event: c.Event, Time: m.clock}
}

func (m *shardModel) unregister(c shardfsm.Unregister) shardfsm.UnregisterAnswer {
	m.advance(c.Time)
	if m.stale(c.Gallery, c.Generation) {
		return shardfsm.UnregisterAnswer{Status: shardfsm.StaleGeneration}
	}
	if o, ok := m.find(c.Op); ok {
		if o.kind != "unregister" || o.gallery != c.Gallery || o.subject != c.Subject {
			return shardfsm.UnregisterAnswer{Status: shardfsm.Conflict}
		}
		return shardfsm.UnregisterAnswer{Status: shardfsm.Done, Time: o.time}
	}
	i := m.subject(c.Gallery, c.Subject)
	if i < 0 {
		return shardfsm.UnregisterAnswer{Status: shardfsm.UnknownSubject}
	}
	gone := m.events[i]
	gone.entry.Deleted, gone.entry.Time = true, m.clock
	gone.tags, gone.template = nil, nil
	m.events = append(slices.Delete(m.events, i, i+1), gone)
	m.ops = append(m.ops, modelOp{"unregister", c.Gallery, c.Op, [16]byte{}, false, m.clock, c.Subject, id.Event{}})
	return shardfsm.UnregisterAnswer{Status: shardfsm.Done, Time: m.clock}
}

func (m *shardModel) list(g id.Gallery) []shard.Entry {
	var out []shard.Entry
	for _, e := range m.events {
		if e.gallery == g {
			out = append(out, e.entry)
		}
	}
	return out
}

// search sorts everything and cuts.
func (m *shardModel) search(g id.Gallery, q shard.Query) []shard.Hit {
	var all []shard.Hit
	for _, e := range m.events {
		tagged := len(q.Tags) == 0
		for _, tag := range q.Tags {
			tagged = tagged || slices.Contains(e.tags, tag)
		}
		if e.gallery != g || e.entry.Deleted || !tagged {
			continue
		}
		if s := table.Score(score.Dot(q.Probe, e.template)); s >= q.Threshold {
			all = append(all, shard.Hit{Subject: e.entry.Subject, Event: e.entry.Event, Score: s})
		}
	}
	slices.SortFunc(all, func(a, b shard.Hit) int {
		switch {
		case a.Score != b.Score:
			return b.Score - a.Score
		case a.Subject != b.Subject:
			return bytes.Compare(a.Subject.UUID[:], b.Subject.UUID[:])
		default:
			return bytes.Compare(a.Event.UUID[:], b.Event.UUID[:])
		}
	})
	return all[:min(len(all), q.Limit)]
}

// shardWorld makes commands and what the model answers to them.
type shardWorld struct {
	*rand.Rand
	model  *shardModel
	time   int64
	events int
	// recent are registrations, to be sent again.
	recent []shardfsm.Register
	check  []func(t *testing.T, answer []byte)
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

// tick moves the clients' clocks, now and then far, now and then back.
func (w *shardWorld) tick() int64 {
	switch w.IntN(40) {
	case 0:
		w.time += 11 * 60_000
	case 1:
		w.time += 25 * 3_600_000
	case 2:
		return w.time - int64(w.IntN(5000))
	default:
		w.time += int64(w.IntN(2000))
	}
	return w.time
}

func (w *shardWorld) generation() uint32 {
	if w.IntN(25) == 0 {
		return 2
	}
	return 1
}

func (w *shardWorld) newRegister() shardfsm.Register {
	w.events++
	c := shardfsm.Register{
		Gallery: galleryID(w.IntN(3)), Generation: w.generation(), Op: id.Operation{1, byte(w.events >> 8), byte(w.events)},
		Request: [16]byte{byte(w.events)}, Keyed: w.IntN(2) == 0, Subject: subjectID(w.events), Event: eventID(w.events),
		Time: w.tick(), Recycle: w.IntN(2) == 0,
	}
	if w.IntN(30) == 0 {
		c.Subject = subjectID(1 + w.IntN(w.events))
	}
	for range w.IntN(3) {
		c.Tags = append(c.Tags, uint32(w.IntN(4)))
	}
	// Few different templates, so that scores are often equal.
	template := unit(rand.New(rand.NewPCG(uint64(w.IntN(12)), 1)))
	w.model.templates[c.Event] = template
	ref := shard.FaceRef{Gallery: c.Gallery, Generation: c.Generation, Subject: c.Subject, Event: c.Event}
	c.Sealed = shard.SealFace(galleryKey, ref, engine.Face{Template: template})
	w.recent = append(w.recent, c)
	return c
}

func (w *shardWorld) register() []byte {
	var c shardfsm.Register
	if len(w.recent) > 0 && w.IntN(4) == 0 { // a retry, perhaps of another request
		c = w.recent[max(0, len(w.recent)-1-w.IntN(10))]
		c.Time = w.tick()
		c.Recycle = w.IntN(2) == 0
		if w.IntN(5) == 0 {
			c.Request[15]++
		}
	} else {
		c = w.newRegister()
	}
	want := w.model.register(c)
	still := slices.ContainsFunc(w.model.events, func(e modelEvent) bool {
		return e.gallery == c.Gallery && e.entry.Event == want.Event && !e.entry.Deleted
	})
	w.check = append(w.check, func(t *testing.T, answer []byte) {
		t.Helper()
		got, err := shardfsm.ParseRegisterAnswer(answer)
		if err != nil {
			t.Fatal(err)
		}
		if hasFace := got.Sealed != nil; hasFace != (want.Status == shardfsm.Replayed && still) {
			t.Fatalf("a face in the answer: %v", hasFace)
		}
		got.Sealed = nil
		if !reflect.DeepEqual(want, got) {
			t.Fatalf("register (-want +got):\n%s", cmp.Diff(want, got))
		}
	})
	return c.Encode()
}

func (w *shardWorld) unregister() []byte {
	c := shardfsm.Unregister{
		Gallery: galleryID(w.IntN(3)), Generation: w.generation(), Op: id.Operation{2, byte(w.IntN(60))},
		Time: w.tick(), Subject: subjectID(w.IntN(w.events + 1)),
	}
	if len(w.recent) > 0 && w.IntN(3) > 0 {
		of := w.recent[w.IntN(len(w.recent))]
		c.Gallery, c.Subject = of.Gallery, of.Subject
		if w.IntN(20) == 0 {
			c.Op = of.Op
		}
	}
	want := w.model.unregister(c)
	w.check = append(w.check, func(t *testing.T, answer []byte) {
		t.Helper()
		got, err := shardfsm.ParseUnregisterAnswer(answer)
		if err != nil {
			t.Fatal(err)
		}
		if want != got {
			t.Fatalf("unregister: got %+v, want %+v", got, want)
		}
	})
	return c.Encode()
}

func (w *shardWorld) grant() []byte {
	c := shardfsm.Grant{Gallery: galleryID(w.IntN(3)), Generation: w.generation(), Total: uint32(w.IntN(25))}
	want := w.model.grant(c)
	w.check = append(w.check, func(t *testing.T, answer []byte) {
		t.Helper()
		got, err := shardfsm.ParseGrantAnswer(answer)
		if err != nil {
			t.Fatal(err)
		}
		if want != got {
			t.Fatalf("grant: got %+v, want %+v", got, want)
		}
	})
	return c.Encode()
}

func (w *shardWorld) next() []byte {
	switch n := w.IntN(20); {
	case n == 0:
		w.check = append(w.check, wantNoAnswer)
		return [][]byte{nil, {codec.Skippable | 9, 1, 0xa0}}[w.IntN(2)]
	case n < 3:
		return w.grant()
	case n < 7:
		return w.unregister()
	default:
		return w.register()
	}
}

func wantNoAnswer(t *testing.T, answer []byte) {
	t.Helper()
	if answer != nil {
		t.Fatalf("an empty or skipped command answers %x", answer)
	}
}

func TestReplicasOfAShardAgreeWithEachOtherAndTheModel(t *testing.T) {
	t.Parallel()
	eachSeed(t, func(t *testing.T, seed uint64) {
		t.Helper()
		r := rand.New(rand.NewPCG(seed, 1))
		w := &shardWorld{Rand: r, time: 1_700_000_000_000, model: &shardModel{
			generation: map[id.Gallery]uint32{}, granted: map[id.Gallery]uint32{}, templates: map[id.Event][]float32{},
		}}
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
			Rand: r, New: func() raftfsm.Machine { return shardfsm.New(table) }, Commands: commands,
			Answer: func(index uint64, answer []byte) { w.check[index-1](t, answer) },
		})
		for i, m := range machines {
			for g := range 3 {
				w.compareGallery(t, i, m.(*shardfsm.Machine).Shard(), galleryID(g))
			}
		}
	})
}

// compareGallery compares what a machine's reads give with the model.
func (w *shardWorld) compareGallery(t *testing.T, replica int, s *shard.Shard, g id.Gallery) {
	t.Helper()
	m := w.model
	want := shard.Usage{Granted: m.granted[g], Active: m.count(g, false), Deleted: m.count(g, true)}
	if got := s.Usage(g); got != want || got.Active+got.Deleted > got.Granted {
		t.Fatalf("replica %d: usage %+v, want %+v", replica, got, want)
	}
	entries, total := s.List(g, 0, 1000, shard.Ascending)
	if list := m.list(g); !slices.Equal(list, entries) || total != len(entries) {
		t.Fatalf("replica %d: total %d, list (-want +got):\n%s", replica, total, cmp.Diff(list, entries))
	}
	if m.generation[g] == 0 {
		return
	}
	for range 4 {
		q := shard.Query{Probe: unit(w.Rand), Threshold: w.IntN(9000), Limit: 1 + w.IntN(6)}
		for range w.IntN(3) {
			q.Tags = append(q.Tags, uint32(w.IntN(4)))
		}
		got, err := s.Search(g, m.generation[g], galleryKey, q)
		if err != nil {
			t.Fatalf("replica %d: %v", replica, err)
		}
		if want := m.search(g, q); !slices.Equal(got, want) {
			t.Fatalf("replica %d: search %+v: got %v, want %v", replica, q, got, want)
		}
	}
}
