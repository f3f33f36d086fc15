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
	// loadBytes is about the size of the entries in one command; an entry of the log
	// has 256 KiB.
	loadBytes = 220 << 10
	// entryBytes is the most bytes of an entry in a command, apart from its face.
	entryBytes = 150
	// purposeData is the purpose for which a gallery's key is wrapped. The gallery's id
	// follows it.
	purposeData = "gallery-data-key"
)

// Node is a node that does not run.
type Node struct {
	ID  id.Node
	Dir string // the data folder
}

// Gallery describes the gallery to fill. Requests created it before: all its nodes are
// voters of meta and of its shards, and one event is registered. Its size is at least
// the wanted number of events, plus two slots for each shard.
type Gallery struct {
	Nodes      []Node
	ClusterKey string // path of the key file
	Name       string
	// Subject and Event are the ids of the registered event.
	Subject id.Subject
	Event   id.Event
	// Spectrum is the mean share of each number of a template in the template's squared
	// norm. With nil all shares are equal.
	Spectrum []float64
}

// Filled describes the templates that Fill put into a gallery.
type Filled struct {
	Spectrum []float64 `json:"spectrum,omitempty"`
	IDKey    []byte    `json:"id_key"`
	Dim      int       `json:"dim"`
	// Shards describes the gallery's shards in order.
	Shards []Part `json:"shards"`
}

// Part describes the templates of one shard: the number of random ones, and the subject
// that has the template of the registered event.
type Part struct {
	Shard   id.Shard   `json:"shard"`
	Random  int        `json:"random"`
	Planted id.Subject `json:"planted"`
}

// filler fills one gallery.
type filler struct {
	Gallery
	places []place
	key    *seal.Key
	at     metafsm.Gallery
	shards []id.Shard
	grants map[id.Shard]uint32
	model  engine.Face // the registered face
}

// Fill puts templates into a gallery until it has about this many events. The last
// event of each shard gets the registered face, so that a search for that face has to
// find one in every shard.
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

// readMeta finds the gallery and its key, and lets meta grant the slots.
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
		err = raise(ctx, g.leader)
	}
	if err == nil {
		err = f.grant(ctx, g.leader, states[0], master, events)
	}
	return errors.Join(err, g.close())
}

// raise lets the cluster use the newest forms that its nodes know. The leader of a
// running cluster does so some moments after its foundation. A node that was stopped
// earlier would otherwise find shards in an older form than it writes.
func raise(ctx context.Context, g *raftfsm.Group) error {
	_, err := g.Propose(ctx, metafsm.RaiseLevelOp.Encode(metafsm.RaiseLevel{Level: metafsm.Level}))
	return err
}

// grant lets meta grant each shard the slots that it needs.
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

// newMachine returns a shard's state machine. The machine never searches, so its table and arena are not used.
func newMachine() (*shardfsm.Machine, error) {
	table, err := score.NewTable([]score.Point{{Cosine: -1}, {Cosine: 0}, {Cosine: score.Same, Score: score.Max}, {Cosine: 1, Score: score.Max}})
	if err != nil {
		return nil, err
	}
	return shardfsm.New(table, kernel.NewArena(0)), nil
}

// open opens a shard's group, calls while, and closes the group.
func (f *filler) open(ctx context.Context, number id.Shard, while func(*group) error) (err error) {
	machines := make([]*shardfsm.Machine, len(f.places))
	for i := range machines {
		if machines[i], err = newMachine(); err != nil {
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

// readRegistered finds the registered face. All other faces are copies of it with other
// templates.
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

// lookIn looks for the registered face in one replica.
func (f *filler) lookIn(number id.Shard, p place) error {
	m, err := newMachine()
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

// fillShard adds entries until the shard has n. The last one has the registered face.
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

// Entry is an event in a shard.
type Entry struct {
	Subject  id.Subject
	Event    id.Event
	template engine.Template // nil: that of the registered event
	number   uint64
}

// Rows iterates over the events of a part again, each with its template. registered is
// the template of the registered event. A template is valid until the next one.
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

// entries iterates over n events of a shard, the same ones each time. The last one has
// no template.
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

// Random returns a template of normally distributed numbers, each with a scale of its
// own.
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
