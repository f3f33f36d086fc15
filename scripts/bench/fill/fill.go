package fill

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"time"

	"facet/engine"
	"facet/engine/score"
	"facet/internal/id"
	"facet/raftfsm"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
	"facet/shard"
	"facet/shard/kernel"
	"facet/shard/seal"
)

const (
	// loadBytes is about what a command carries; an entry of the log has 256 KiB.
	loadBytes = 220 << 10
	// entryBytes is what an entry takes in a command beside its face, at most.
	entryBytes = 150
	// purposeData is what a gallery's key is wrapped for, before its id.
	purposeData = "gallery-data-key"
)

// Node is a node that does not run.
type Node struct {
	ID  id.Node
	Dir string // of its data
}

// Gallery is what templates are put into. All of it was made by requests before: its
// nodes are all voters of meta and of its shards, and one event was registered. Its size
// is two slots for each shard more than what it gets, at least.
type Gallery struct {
	Nodes      []Node
	ClusterKey string // file
	Name       string
	// Subject and Event are what was registered.
	Subject id.Subject
	Event   id.Event
	// Spectrum is the share that each number of a template has of its squared norm, on
	// average; nil: all the same.
	Spectrum []float64
}

// Filled is what a gallery got.
type Filled struct {
	Spectrum []float64 `json:"spectrum,omitempty"`
	IDKey    []byte    `json:"id_key"`
	Dim      int       `json:"dim"`
	// Shards are those of the gallery in order, each with the number of its random
	// templates and with the subject that has the template of the registered event.
	Shards []Part `json:"shards"`
}

// Part is what one shard got.
type Part struct {
	Shard   id.Shard   `json:"shard"`
	Random  int        `json:"random"`
	Planted id.Subject `json:"planted"`
}

// filler works on one gallery.
type filler struct {
	Gallery
	places []place
	level  uint32 // of the cluster
	key    *seal.Key
	at     metafsm.Gallery
	shards []id.Shard
	grants map[id.Shard]uint32
	model  engine.Face // what was registered
}

// Fill puts templates into a gallery until it has about so many events. Each of its
// shards gets the registered face as its last, so that a search for it can only be
// right with all of them.
func Fill(ctx context.Context, g Gallery, events int) (Filled, error) {
	f := &filler{Gallery: g, grants: make(map[id.Shard]uint32)}
	if err := f.readMeta(ctx, events); err != nil {
		return Filled{}, fmt.Errorf("read meta: %w", err)
	}
	filled := Filled{Spectrum: g.Spectrum, IDKey: f.at.IDKey[:]}
	if err := f.readRegistered(); err != nil {
		return filled, err
	}
	filled.Dim = len(f.model.Template)
	for i, s := range f.shards {
		n := events / len(f.shards)
		if i < events%len(f.shards) {
			n++
		}
		p, err := f.fillShard(ctx, s, n, &filled)
		if err != nil {
			return filled, fmt.Errorf("fill shard %d: %w", s, err)
		}
		filled.Shards = append(filled.Shards, p)
	}
	return filled, nil
}

// readMeta finds the gallery and its key, and has meta give the slots.
func (f *filler) readMeta(ctx context.Context, events int) error {
	master, err := readMaster(f.ClusterKey)
	if err != nil {
		return err
	}
	state := metafsm.New()
	stopped, err := raftfsm.OpenStopped(raftfsm.Config{Group: id.Meta, Dir: folder(f.Nodes[0].Dir, id.Meta)}, state)
	if err != nil {
		return err
	}
	if err := errors.Join(stopped.Replay(), stopped.Close()); err != nil {
		return err
	}
	if f.places, err = placesOf(stopped.Members, f.Nodes); err != nil {
		return err
	}
	states := make([]*metafsm.Machine, len(f.places))
	g, err := openGroup(ctx, id.Meta, f.places, func(i int) raftfsm.Machine {
		states[i] = metafsm.New()
		return states[i]
	})
	if err != nil {
		return err
	}
	err = g.settle(ctx)
	if err == nil {
		err = f.raise(ctx, g.leader)
	}
	if err == nil {
		err = f.grant(ctx, g.leader, states[0], master, events)
	}
	return errors.Join(err, g.close())
}

// raise has the cluster use the newest forms that its nodes know, as its leader does some
// moments after the founding: nodes that were stopped before would find shards here in an
// older form than they write.
func (f *filler) raise(ctx context.Context, g *raftfsm.Group) error {
	b, err := g.Propose(ctx, metafsm.RaiseLevelOp.Encode(metafsm.RaiseLevel{Level: metafsm.Level}))
	if err != nil {
		return err
	}
	a, err := metafsm.RaiseLevelOp.Answer(b)
	f.level = a.Level // lower where a node knows less
	return err
}

// grant has meta give each shard the slots that it needs.
func (f *filler) grant(ctx context.Context, g *raftfsm.Group, state *metafsm.Machine, master *seal.Master, events int) error {
	cluster, _ := state.Cluster()
	for _, t := range state.Tenants() {
		if at, ok := state.GalleryByName(t.ID, f.Name); ok {
			f.at = at
		}
	}
	raw, err := master.Unwrap(f.at.WrappedKey, []byte(purposeData+f.at.ID.String()))
	if err != nil {
		return err
	}
	if f.key, err = seal.NewKey(raw); err != nil {
		return err
	}
	f.shards = metafsm.ShardsOf(f.at.ID, f.at.Shards, cluster.Shards)
	want := uint32(events/len(f.shards) + 2) // the registered one, and the rest of the division
	for _, at := range state.Grants(f.at.ID) {
		f.grants[at.Shard] = at.Total
	}
	for _, s := range f.shards {
		have := f.grants[s]
		if have >= want {
			continue
		}
		b, err := g.Propose(ctx, metafsm.GrantOp.Encode(metafsm.Grant{Gallery: f.at.ID, Generation: f.at.Generation, Shard: s, Have: have, Want: want - have}))
		if err != nil {
			return err
		}
		a, err := metafsm.GrantOp.Answer(b)
		if err != nil || a.Total < want {
			return errors.Join(fmt.Errorf("shard %d is granted %d slots of %d", s, a.Total, want), err)
		}
		f.grants[s] = a.Total
	}
	return nil
}

func readMaster(file string) (*seal.Master, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	first, _, _ := bytes.Cut(text, []byte("\n"))
	secret, err := hex.DecodeString(string(bytes.TrimSpace(first)))
	if err != nil {
		return nil, fmt.Errorf("read the cluster's key: %w", err)
	}
	return seal.NewMaster(secret)
}

// newMachine makes a shard's machine, whose snapshots have the form that nodes give them.
// It never searches, so that its table and arena are not used.
func (f *filler) newMachine() (*shardfsm.Machine, error) {
	table, err := score.NewTable([]score.Point{{Cosine: -1}, {Cosine: 0}, {Cosine: score.Same, Score: score.Max}, {Cosine: 1, Score: score.Max}})
	if err != nil {
		return nil, err
	}
	m := shardfsm.New(table, kernel.NewArena(0))
	m.Batch(func() bool { return f.level >= metafsm.LevelBatches })
	return m, nil
}

// open opens a shard's group for while.
func (f *filler) open(ctx context.Context, number id.Shard, while func(*group) error) (err error) {
	machines := make([]*shardfsm.Machine, len(f.places))
	for i := range machines {
		if machines[i], err = f.newMachine(); err != nil {
			return err
		}
		defer machines[i].Shard().Close()
	}
	g, err := openGroup(ctx, number, f.places, func(i int) raftfsm.Machine { return machines[i] })
	if err != nil {
		return err
	}
	return errors.Join(while(g), g.close())
}

// readRegistered reads the face that was registered, of which the others are copies in
// all but the template.
func (f *filler) readRegistered() error {
	for _, s := range f.shards {
		for _, p := range f.places {
			if err := f.lookIn(s, p); err != nil || f.model.Template != nil {
				return err
			}
		}
	}
	return errors.New("the registered event is nowhere")
}

// lookIn looks for it in one replica.
func (f *filler) lookIn(number id.Shard, p place) error {
	m, err := f.newMachine()
	if err != nil {
		return err
	}
	defer m.Shard().Close()
	stopped, err := raftfsm.OpenStopped(raftfsm.Config{Group: number, Self: p.member, Dir: folder(p.dir, number)}, m)
	if err != nil {
		return err
	}
	err = stopped.Replay()
	if sealed, ok := m.Shard().Sealed(f.at.ID, f.Subject, f.Event, 0); ok && err == nil {
		ref := shard.FaceRef{Gallery: f.at.ID, Generation: f.at.Generation, Subject: f.Subject, Event: f.Event}
		f.model, err = shard.OpenFace(f.key, ref, sealed)
	}
	return errors.Join(err, stopped.Close())
}

// fillShard loads entries until the shard has n, the last with the registered face.
func (f *filler) fillShard(ctx context.Context, number id.Shard, n int, filled *Filled) (p Part, err error) {
	p.Shard = number
	err = f.open(ctx, number, func(g *group) error {
		load := shardfsm.Load{Slice: shard.CopiedSlice{
			Gallery: f.at.ID, Generation: f.at.Generation, Granted: f.grants[number], Epoch: f.at.Epoch,
		}}
		there, err := propose(ctx, g.leader, load)
		if err != nil {
			return err
		}
		load.Have, load.Base = there.Entries, there.Last+1
		p.Random = n - int(there.Entries) - 1
		now, size := time.Now().UnixMilli(), 0
		for e := range filled.entries(number, p.Random+1) {
			face := f.model
			if e.template != nil {
				face.Template = e.template
			} else {
				p.Planted = e.Subject
			}
			load.Entries = append(load.Entries, f.seal(e, now, face))
			if size += len(load.Entries[len(load.Entries)-1].Sealed) + entryBytes; size < loadBytes && e.template != nil {
				continue
			}
			there, err := propose(ctx, g.leader, load)
			if err != nil {
				return err
			}
			load.Have, load.Entries, size = there.Entries, load.Entries[:0], 0
		}
		return g.settle(ctx)
	})
	return p, err
}

func propose(ctx context.Context, g *raftfsm.Group, load shardfsm.Load) (shardfsm.LoadAnswer, error) {
	b, err := g.Propose(ctx, shardfsm.LoadOp.Encode(load))
	if err != nil {
		return shardfsm.LoadAnswer{}, err
	}
	a, err := shardfsm.LoadOp.Answer(b)
	first := len(load.Entries) == 0 && a.Status == shardfsm.Moved // it tells what is there
	if err == nil && a.Status != shardfsm.Done && !first {
		err = fmt.Errorf("the load is answered by %s", a.Status)
	}
	return a, err
}

func (f *filler) seal(e Entry, now int64, face engine.Face) shard.CopiedEntry {
	c := shard.CopiedEntry{Subject: e.Subject, Event: e.Event, Time: now, Sequence: e.number, First: e.number}
	c.Sealed = shard.SealFace(f.key, shard.FaceRef{Gallery: f.at.ID, Generation: f.at.Generation, Subject: e.Subject, Event: e.Event}, face)
	return c
}

// Entry is an event that was put into a shard.
type Entry struct {
	Subject  id.Subject
	Event    id.Event
	template engine.Template // nil: that of the registered event
	number   uint64
}

// Rows gives again the events of a part, each with its template; registered is that of
// the event that was registered. The template is valid until the next one.
func (f *Filled) Rows(p Part, registered engine.Template) iter.Seq2[Entry, engine.Template] {
	return func(yield func(Entry, engine.Template) bool) {
		for e := range f.entries(p.Shard, p.Random+1) {
			t := e.template
			if t == nil {
				t = registered
			}
			if !yield(e, t) {
				return
			}
		}
	}
}

// entries gives n events of a shard, of which the last has no template; the same ones
// each time.
func (f *Filled) entries(number id.Shard, n int) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		random := rand.New(rand.NewPCG(1, uint64(number))) //nolint:gosec // the same templates in each run
		scale := make([]float64, f.Dim)
		for i := range scale {
			if scale[i] = 1; f.Spectrum != nil {
				scale[i] = math.Sqrt(f.Spectrum[i])
			}
		}
		for i := range uint64(n) {
			op := id.Operation{1: byte(number), 2: byte(i >> 24), 3: byte(i >> 16), 4: byte(i >> 8), 5: byte(i)}
			e := Entry{number: i + 1}
			e.Subject.UUID, e.Event.UUID = id.Derive(f.IDKey, "bench subject", op, number), id.Derive(f.IDKey, "bench event", op, number)
			if i+1 < uint64(n) {
				e.template = Random(random, scale)
			}
			if !yield(e) {
				return
			}
		}
	}
}

// Random makes a template whose numbers are normal, each of its own scale.
func Random(random *rand.Rand, scale []float64) engine.Template {
	t := make(engine.Template, len(scale))
	var squares float64
	for i, s := range scale {
		x := s * random.NormFloat64()
		t[i] = float32(x)
		squares += x * x
	}
	for i := range t {
		t[i] /= float32(math.Sqrt(squares))
	}
	return t
}
