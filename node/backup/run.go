package backup

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"time"

	"facet/internal/id"
	"facet/node/bucket"
	"facet/raftfsm/metafsm"
	"facet/shard/seal"
)

const (
	// partsAtOnce is the most parts that are made or restored at the same time.
	partsAtOnce = 4
	// partAgeMax is the greatest age of a part that a continued backup keeps.
	partAgeMax = 24 * time.Hour
	// cutsMax is the most rounds of parts until none is stale.
	cutsMax = 5
	// partTimeout is how long one part may take.
	partTimeout = 4 * time.Hour
)

// Order asks for the part of one shard.
type Order struct {
	URL       string       `json:"url"`
	Backup    string       `json:"backup"`
	Shard     id.Shard     `json:"shard"`
	Galleries []id.Gallery `json:"galleries,omitempty"` // empty is all
	// Key is KeyCheck of the key to use, because nodes change their keys at different times.
	Key Digest `json:"key"`
	// Try names this attempt, and For is the member that makes the backup. Before the part
	// exists, its writer asks For whether Try is still wanted.
	Try string    `json:"try,omitempty"`
	For id.Member `json:"for,omitempty"`
}

// PartName returns the name of a shard's part.
func PartName(s id.Shard) string { return fmt.Sprintf("shard-%04d", s) }

// Source is the cluster of a backup.
type Source interface {
	// Part lets the leader of a shard carry out an order (WriteShard). The part has every
	// write acknowledged before the call.
	Part(ctx context.Context, o Order) (Part, error)
	// Meta returns the state of meta, with every write acknowledged before the call.
	Meta(ctx context.Context) (State, error)
	// Checkpoint returns the signed checkpoint of a tenant's audit log, or nil if the tenant has none.
	Checkpoint(ctx context.Context, tenant id.Tenant) ([]byte, error)
}

// Options configures a backup.
type Options struct {
	URL       string
	Name      string
	Galleries []id.Gallery // empty is all
	Version   string
	Master    *seal.Master
	// Progress is called after each part; it may be nil.
	Progress func(done, total int)
}

// ErrKeyChanges is returned while the cluster's key is being changed and not all nodes have
// the new one yet.
var ErrKeyChanges = errors.New("backup: the cluster's key is being changed: try again when that is over")

// WriteShard writes a shard's part and releases state. The part exists only if wanted, which
// WriteShard calls at the end, returns no error.
func WriteShard(ctx context.Context, o Order, state State, master *seal.Master, wanted func() error) (part Part, err error) {
	err = checkName(o.Backup)
	if err == nil && o.Key != KeyCheck(master) {
		err = ErrKeyChanges
	}
	var f *bucket.Folder
	if err == nil {
		f, err = bucket.MakeFolder(ctx, o.URL)
	}
	if err != nil {
		state.Release()
		return Part{}, err
	}
	defer func() { _ = f.Close() }() // writePart has closed what it wrote
	end := partEnd{Taken: time.Now().UnixMilli(), Choice: choice(o.Galleries)}
	err = writePart(ctx, f, keyOf(master, o.Backup), place{o.Backup, PartName(o.Shard)}, state, func(out *partWriter) error {
		if part, err = copyShard(out, state, choose(o.Galleries), end); err != nil {
			return err
		}
		return wanted()
	})
	return part, err
}

// writePart creates a part that write fills and finishes. write must release state;
// writePart releases it if it can't call write.
func writePart(ctx context.Context, f *bucket.Folder, key *seal.Key, at place, state State, write func(*partWriter) error) error {
	called := false
	err := f.Create(ctx, at.backup+"/"+at.part, func(w io.Writer) error {
		out, err := newPartWriter(w, key, at)
		if err != nil {
			return err
		}
		called = true
		return write(out)
	})
	if !called {
		state.Release()
	}
	return err
}

// choose returns the set of galleries.
func choose(galleries []id.Gallery) chosen {
	if len(galleries) == 0 {
		return nil
	}
	c := chosen{}
	for _, g := range galleries {
		c[g] = true
	}
	return c
}

// choice returns a hash of a set of galleries.
func choice(galleries []id.Gallery) [32]byte {
	h := sha256.New()
	for _, g := range slices.SortedFunc(slices.Values(galleries), func(a, b id.Gallery) int { return slices.Compare(a.UUID[:], b.UUID[:]) }) {
		h.Write(g.UUID[:])
	}
	return [32]byte(h.Sum(nil))
}

// run is the state of one Run.
type run struct {
	Options
	source Source
	folder *bucket.Folder
	key    *seal.Key
	check  Digest // KeyCheck of the key at the start

	mu    sync.Mutex // guards the fields below
	parts map[id.Shard]Part
	spans map[id.Shard]span
	clock int
	done  int
	total int
}

// span says when a part was taken, by a clock of the run that counts events. The zero value is that of
// a part of an earlier run.
type span struct{ began, ended int }

// Run makes a backup, or continues an unfinished one and keeps its whole parts. It returns
// the manifest of a finished one.
//
// Run takes the parts of the shards first and meta's part last, so that meta knows
// everything that a shard has. After its part was taken, a shard may return slots of a
// gallery to meta, or get events of a subject that a merge then removes from another shard.
// Run takes that shard's part again, because otherwise the slots of the gallery could exceed
// its size, or the events would be in no part.
func Run(ctx context.Context, o Options, source Source) (Manifest, error) {
	if err := checkName(o.Name); err != nil {
		return Manifest{}, err
	}
	return inFolder(ctx, bucket.MakeFolder, o.URL, func(f *bucket.Folder) (Manifest, error) {
		if m, err := readManifest(ctx, f, o.Name, o.Master); !errors.Is(err, ErrUnfinished) {
			return m, err
		}
		r := &run{Options: o, source: source, folder: f, key: keyOf(o.Master, o.Name), check: KeyCheck(o.Master), parts: map[id.Shard]Part{}, spans: map[id.Shard]span{}}
		return r.run(ctx)
	})
}

func (r *run) run(ctx context.Context) (Manifest, error) {
	cluster, err := r.cluster(ctx)
	if err != nil {
		return Manifest{}, err
	}
	r.total = cluster.Shards + 1
	var shards []id.Shard
	for s := range cluster.Shards {
		shards = append(shards, id.Shard(s+1))
	}
	meta, err := r.cut(ctx, shards)
	if err != nil {
		return Manifest{}, err
	}
	m := Manifest{
		Head: Head{
			Format: Format, Name: r.Name, Created: time.UnixMilli(meta.Taken).UTC(), Version: r.Version, Level: metafsm.Level,
			Key: r.check, Parts: len(shards) + 1, Bytes: meta.Bytes,
		},
		Contents: Contents{Cluster: cluster.ID, Shards: cluster.Shards, Pack: cluster.Pack, Galleries: r.Galleries, Meta: meta},
	}
	for _, s := range shards {
		m.Bytes += r.parts[s].Bytes
		m.Contents.Parts = append(m.Contents.Parts, r.parts[s])
	}
	if m.ClusterLog, err = checkpoint(ctx, r.source, id.ClusterLog); err != nil {
		return Manifest{}, err
	}
	if KeyCheck(r.Master) != r.check {
		return Manifest{}, ErrKeyChanges
	}
	m.Digest, err = writeManifest(ctx, r.folder, m, r.Master)
	return m, err
}

// cluster reads the cluster's record.
func (r *run) cluster(ctx context.Context) (c metafsm.Cluster, err error) {
	state, err := r.source.Meta(ctx)
	if err != nil {
		return c, err
	}
	err = stream(state, func(in io.Reader) error {
		return metafsm.ReadAllCopied(in, func(record metafsm.Copied) error {
			if record.Cluster != nil {
				c = *record.Cluster
			}
			return nil
		})
	})
	if err == nil && c.Shards == 0 {
		err = errors.New("the cluster is not founded")
	}
	return c, err
}

// cut takes the parts of shards and then meta's part, and repeats stale parts until there
// are none. It returns meta's part.
func (r *run) cut(ctx context.Context, shards []id.Shard) (Part, error) {
	again := false
	for range cutsMax {
		if err := r.takeAll(ctx, shards, again); err != nil {
			return Part{}, err
		}
		meta, grants, err := r.meta(ctx)
		if err != nil {
			return Part{}, err
		}
		if shards = r.stale(grants); len(shards) == 0 {
			return meta, nil
		}
		again = true
	}
	return Part{}, fmt.Errorf("slots and events kept moving between shards %v; try again", shards)
}

// takeAll takes the parts of shards, partsAtOnce at a time. Unless again is set, it keeps
// parts that an earlier run has left.
func (r *run) takeAll(ctx context.Context, shards []id.Shard, again bool) error {
	return inParallel(ctx, shards, func(ctx context.Context, s id.Shard) error {
		part, ok := Part{}, false
		if !again {
			part, ok = r.there(ctx, s)
		}
		var at span
		if !ok {
			ctx, cancel := context.WithTimeout(ctx, partTimeout)
			defer cancel()
			at.began = r.tick()
			var err error
			part, err = r.source.Part(ctx, Order{URL: r.URL, Backup: r.Name, Shard: s, Galleries: r.Galleries, Key: r.check})
			if err != nil {
				return fmt.Errorf("take the part of shard %d: %w", s, err)
			}
			at.ended = r.tick()
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.parts[s], r.spans[s] = part, at
		r.progress()
		return nil
	})
}

// tick returns the next reading of the run's clock.
func (r *run) tick() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clock++
	return r.clock
}

func (r *run) progress() {
	r.done = min(r.done+1, r.total)
	if r.Progress != nil {
		r.Progress(r.done, r.total)
	}
}

// there returns a shard's part from an earlier, unfinished run, and whether it can stay.
func (r *run) there(ctx context.Context, s id.Shard) (Part, bool) {
	in, _, err := r.folder.Open(ctx, r.Name+"/"+PartName(s))
	if err != nil {
		return Part{}, false
	}
	defer in.Close()
	part, end, err := readPart(in, r.key, place{r.Name, PartName(s)}, visit{})
	young := time.Since(time.UnixMilli(end.Taken)) < partAgeMax
	return part, err == nil && young && end.Choice == choice(r.Galleries)
}

// meta writes meta's part and returns the grants in it.
func (r *run) meta(ctx context.Context) (part Part, grants []metafsm.GrantsOf, err error) {
	state, err := r.source.Meta(ctx)
	if err != nil {
		return Part{}, nil, err
	}
	err = writePart(ctx, r.folder, r.key, place{r.Name, metaName}, state, func(out *partWriter) error {
		m := metaCopier{out: out, want: choose(r.Galleries), master: r.Master, checkpoint: func(t id.Tenant) ([]byte, error) { return checkpoint(ctx, r.source, t) }}
		part, grants, err = m.copy(state, partEnd{Taken: time.Now().UnixMilli(), Choice: choice(r.Galleries)})
		return err
	})
	if err == nil {
		r.progress()
	}
	return part, grants, err
}

// stale returns the shards whose parts have slots that meta has reclaimed since, or lack events that
// were merged into their subjects and then removed from another part.
func (r *run) stale(grants []metafsm.GrantsOf) []id.Shard {
	type key struct {
		shard   id.Shard
		gallery id.Gallery
	}
	slots := map[key]Slice{}
	for s, part := range r.parts {
		for _, slice := range part.Slices {
			slots[key{s, slice.Gallery}] = slice
		}
	}
	old := map[id.Shard]bool{}
	for _, of := range grants {
		for _, g := range of.Grants {
			if has := slots[key{g.Shard, of.Gallery}]; has.Returned < g.Reclaimed || has.Granted > g.Total {
				old[g.Shard] = true
			}
		}
	}
	for s, part := range r.parts {
		for target, index := range part.Copied {
			// After a loss of data a log may begin anew, so a part that was begun later is enough.
			if r.parts[target].Index < index && r.spans[target].began <= r.spans[s].ended {
				old[target] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(old))
}

// inParallel calls f for each shard, partsAtOnce at a time, and returns the first error after
// all calls have ended.
func inParallel(ctx context.Context, shards []id.Shard, f func(context.Context, id.Shard) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var work sync.WaitGroup
	places := make(chan struct{}, partsAtOnce)
	for _, s := range shards {
		places <- struct{}{}
		if ctx.Err() != nil {
			<-places
			break
		}
		work.Go(func() {
			defer func() { <-places }()
			if err := f(ctx, s); err != nil {
				cancel(err)
			}
		})
	}
	work.Wait()
	return context.Cause(ctx)
}

// Verify reads all of a backup and compares it with its manifest. The error names the first
// damaged or missing part.
func Verify(ctx context.Context, f *bucket.Folder, name string, master *seal.Master, progress func(done, total int)) (Manifest, error) {
	m, err := readManifest(ctx, f, name, master)
	if err != nil {
		return m, err
	}
	key := keyOf(master, name)
	for i, want := range append(slices.Clone(m.Contents.Parts), m.Meta) {
		if err := verifyPart(ctx, f, key, name, want); err != nil {
			return m, err
		}
		if progress != nil {
			progress(i+1, m.Head.Parts)
		}
	}
	return m, nil
}

func verifyPart(ctx context.Context, f *bucket.Folder, key *seal.Key, name string, want Part) error {
	got, err := visitPart(ctx, f, key, place{name, want.Name}, visit{})
	if err != nil {
		return err
	}
	if got.Bytes != want.Bytes || got.SHA256 != want.SHA256 || got.Records != want.Records || !slices.Equal(got.Slices, want.Slices) {
		return fmt.Errorf("%w: part %s is not the one that the manifest names", ErrDamaged, want.Name)
	}
	return nil
}

// visitPart reads a part in the store (readPart).
func visitPart(ctx context.Context, f *bucket.Folder, key *seal.Key, at place, v visit) (Part, error) {
	r, _, err := f.Open(ctx, at.backup+"/"+at.part)
	if errors.Is(err, fs.ErrNotExist) {
		return Part{}, fmt.Errorf("%w: part %s is missing", ErrDamaged, at.part)
	}
	if err != nil {
		return Part{}, err
	}
	defer r.Close()
	part, _, err := readPart(r, key, at, v)
	return part, err
}
