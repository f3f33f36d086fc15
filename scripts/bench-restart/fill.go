package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
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

// filler puts templates into the shards of a node that does not run.
type filler struct {
	dir    string // of the node's data
	key    *seal.Key
	at     metafsm.Gallery
	shards []id.Shard
	grants map[id.Shard]uint32
	// spectrum is the pack's, or nil.
	spectrum []float64
	// probe is the face that all searches look for: each shard gets it as its last.
	probe engine.Face
	// planted are the subjects that have it.
	planted []id.Subject
}

// alone is the stream of a group without other members.
type alone struct{ net.Listener }

func (alone) Dial(context.Context, string) (net.Conn, error) {
	return nil, errors.New("there is nobody else")
}

// openGroup opens a group of one member, and waits until it leads and has all its log.
func (f *filler) openGroup(ctx context.Context, number id.Shard, self id.Member, m raftfsm.Machine) (*raftfsm.Group, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	g, err := raftfsm.Open(raftfsm.Config{
		Group: number, Self: self, Dir: f.folder(number), Stream: alone{l},
		Resolve: func(id.Member) (string, error) { return "", errors.New("there is nobody else") },
		Log:     slog.New(slog.DiscardHandler), TrailingLogs: 1,
	}, m)
	if err != nil {
		return nil, err
	}
	for begin := time.Now(); !g.IsLeader(); time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > time.Minute {
			return nil, errors.Join(fmt.Errorf("group %d elects nobody", number), g.Close())
		}
	}
	index, err := g.ReadIndex(ctx)
	if err == nil {
		err = g.WaitApplied(ctx, index)
	}
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

func (f *filler) folder(number id.Shard) string {
	return filepath.Join(f.dir, fmt.Sprintf("group-%d", number))
}

// readMeta finds the gallery, its key and the slots that meta has for it.
func (f *filler) readMeta(ctx context.Context, clusterKey string, name string, events int) (self id.Member, err error) {
	master, err := readMaster(clusterKey)
	if err != nil {
		return "", err
	}
	state := metafsm.New()
	stopped, err := raftfsm.OpenStopped(raftfsm.Config{Group: id.Meta, Dir: f.folder(id.Meta)}, state)
	if err != nil {
		return "", err
	}
	err = errors.Join(stopped.Replay(), stopped.Close())
	if err != nil || len(stopped.Members) != 1 {
		return "", errors.Join(fmt.Errorf("%d members", len(stopped.Members)), err)
	}
	self = stopped.Members[0].Member
	cluster, _ := state.Cluster()
	for _, t := range state.Tenants() {
		if g, ok := state.GalleryByName(t.ID, name); ok {
			f.at = g
		}
	}
	raw, err := master.Unwrap(f.at.WrappedKey, []byte(purposeData+f.at.ID.String()))
	if err != nil {
		return "", err
	}
	if f.key, err = seal.NewKey(raw); err != nil {
		return "", err
	}
	f.shards = metafsm.ShardsOf(f.at.ID, f.at.Shards, cluster.Shards)
	return self, f.grant(ctx, self, events)
}

// grant has meta give each shard the slots that it needs.
func (f *filler) grant(ctx context.Context, self id.Member, events int) error {
	state := metafsm.New()
	g, err := f.openGroup(ctx, id.Meta, self, state)
	if err != nil {
		return err
	}
	f.grants = make(map[id.Shard]uint32)
	want := uint32(events/len(f.shards) + 2) // the probe's, and the rest of the division
	for _, s := range f.shards {
		have := uint32(0)
		for _, at := range state.Grants(f.at.ID) {
			if at.Shard == s {
				have = at.Total
			}
		}
		f.grants[s] = have
		if have >= want {
			continue
		}
		b, err := g.Propose(ctx, metafsm.Grant{Gallery: f.at.ID, Generation: f.at.Generation, Shard: s, Have: have, Want: want - have}.Encode())
		if err != nil {
			return errors.Join(err, g.Close())
		}
		a, err := metafsm.ParseGrantAnswer(b)
		if err != nil || a.Total < want {
			return errors.Join(fmt.Errorf("shard %d is granted %d slots of %d", s, a.Total, want), err, g.Close())
		}
		f.grants[s] = a.Total
	}
	return g.Close()
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

// fill gives every shard its part of the templates.
func (f *filler) fill(ctx context.Context, self id.Member, events int, probe func(*shard.Shard) (engine.Face, bool)) error {
	table, err := score.NewTable([]score.Point{{Cosine: -1, Score: 0}, {Cosine: .5, Score: 7000}, {Cosine: .998, Score: 9999}, {Cosine: 1, Score: 9999}})
	if err != nil {
		return err
	}
	arena := kernel.NewArena(0)
	machines := make(map[id.Shard]*shardfsm.Machine)
	groups := make(map[id.Shard]*raftfsm.Group)
	defer func() {
		for s, g := range groups {
			err = errors.Join(err, g.Close())
			machines[s].Shard().Close()
		}
	}()
	for _, s := range f.shards {
		machines[s] = shardfsm.New(table, arena)
		if groups[s], err = f.openGroup(ctx, s, self, machines[s]); err != nil {
			delete(groups, s)
			return err
		}
		if face, ok := probe(machines[s].Shard()); ok {
			f.probe = face
		}
	}
	if f.probe.Template == nil {
		return errors.New("the probe is enrolled nowhere")
	}
	for i, s := range f.shards {
		n := events / len(f.shards)
		if i < events%len(f.shards) {
			n++
		}
		if err := f.fillShard(ctx, groups[s], s, n); err != nil {
			return fmt.Errorf("fill shard %d: %w", s, err)
		}
	}
	return nil
}

// fillShard loads n entries, the last with the probe's face.
func (f *filler) fillShard(ctx context.Context, g *raftfsm.Group, number id.Shard, n int) error {
	random := rand.New(rand.NewPCG(1, uint64(number)))
	load := shardfsm.Load{Slice: shard.CopiedSlice{
		Gallery: f.at.ID, Generation: f.at.Generation, Granted: f.grants[number], Epoch: f.at.Epoch,
	}}
	there, err := propose(ctx, g, load)
	if err != nil {
		return err
	}
	load.Have, load.Base = there.Entries, there.Last+1
	now := time.Now().UnixMilli()
	size := 0
	for i := uint64(1); load.Have+uint64(len(load.Entries)) < uint64(n); i++ {
		face := f.face(random)
		last := load.Have+uint64(len(load.Entries))+1 == uint64(n)
		if last {
			face = f.probe
		}
		e := f.entry(number, i, now, face)
		if last {
			f.planted = append(f.planted, e.Subject)
		}
		load.Entries = append(load.Entries, e)
		if size += len(e.Sealed) + entryBytes; size < loadBytes && !last {
			continue
		}
		there, err := propose(ctx, g, load)
		if err != nil {
			return err
		}
		load.Have, load.Entries, size = there.Entries, load.Entries[:0], 0
	}
	// As on a node that has run for a while, the templates are in segments, and no
	// longer in the log.
	return g.Erase(time.Now().Add(time.Hour))
}

func propose(ctx context.Context, g *raftfsm.Group, load shardfsm.Load) (shardfsm.LoadAnswer, error) {
	b, err := g.Propose(ctx, load.Encode())
	if err != nil {
		return shardfsm.LoadAnswer{}, err
	}
	a, err := shardfsm.ParseLoadAnswer(b)
	first := len(load.Entries) == 0 && a.Status == shardfsm.Moved // it tells what is there
	if err == nil && a.Status != shardfsm.Done && !first {
		err = fmt.Errorf("the load is answered by %s", a.Status)
	}
	return a, err
}

// face makes a random one like the probe's, whose numbers weigh what the pack says.
func (f *filler) face(random *rand.Rand) engine.Face {
	face := f.probe
	face.Template = make(engine.Template, len(f.probe.Template))
	var squares float64
	for i := range face.Template {
		sigma := 1.
		if len(f.spectrum) == len(face.Template) {
			sigma = math.Sqrt(f.spectrum[i])
		}
		face.Template[i] = float32(random.NormFloat64() * sigma)
		squares += float64(face.Template[i]) * float64(face.Template[i])
	}
	for i := range face.Template {
		face.Template[i] /= float32(math.Sqrt(squares))
	}
	return face
}

func (f *filler) entry(number id.Shard, i uint64, now int64, face engine.Face) shard.CopiedEntry {
	op := id.Operation{1: byte(number), 2: byte(i >> 24), 3: byte(i >> 16), 4: byte(i >> 8), 5: byte(i)}
	e := shard.CopiedEntry{
		Subject: id.Subject{UUID: id.Derive(f.at.IDKey[:], "bench subject", op, number)},
		Event:   id.Event{UUID: id.Derive(f.at.IDKey[:], "bench event", op, number)},
		Time:    now, Sequence: i, First: i,
	}
	e.Sealed = shard.SealFace(f.key, shard.FaceRef{Gallery: f.at.ID, Generation: f.at.Generation, Subject: e.Subject, Event: e.Event}, face)
	return e
}
