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
	// partsAtOnce is how many parts are made, verified or restored at the same time.
	partsAtOnce = 4
	// partAgeMax is how old a part may be that an unfinished backup goes on with.
	partAgeMax = 24 * time.Hour
	// cutsMax is how often parts are taken again that are older than what meta knows.
	cutsMax = 5
	// partTimeout bounds the making of one part.
	partTimeout = 4 * time.Hour
)

// Order asks for the part of one shard.
type Order struct {
	URL       string       `json:"url"`
	Backup    string       `json:"backup"`
	Shard     id.Shard     `json:"shard"`
	Galleries []id.Gallery `json:"galleries,omitempty"` // none is all
	// Key is KeyCheck of the key to be used: nodes may change theirs at different times.
	// Zero, from an older version, is any.
	Key Digest `json:"key"`
}

// PartName is the name of a shard's part.
func PartName(s id.Shard) string { return fmt.Sprintf("shard-%04d", s) }

// Source is a cluster of which a backup is made.
type Source interface {
	// Part has the leader of a shard carry out an order (WriteShard), on a state that
	// has every write acknowledged before the call.
	Part(ctx context.Context, o Order) (Part, error)
	// Meta gives the state of meta that has every write acknowledged before the call.
	Meta(ctx context.Context) (State, error)
}

// Options say what backup is to be made.
type Options struct {
	URL  string
	Name string
	// Galleries are those that are wanted; none is all.
	Galleries []id.Gallery
	Version   string
	Master    *seal.Master
	// Progress is told of each part that is done; it may be nil.
	Progress func(done, total int)
}

// ErrKeyChanges says that the cluster's key is being changed, and not all nodes have
// the new one yet.
var ErrKeyChanges = errors.New("backup: the cluster's key is being changed: try again when that is over")

// WriteShard writes a shard's part, and releases state.
func WriteShard(ctx context.Context, o Order, state State, master *seal.Master) (Part, error) {
	err := checkName(o.Backup)
	if err == nil && o.Key != (Digest{}) && o.Key != KeyCheck(master) {
		err = ErrKeyChanges
	}
	if err != nil {
		state.Release()
		return Part{}, err
	}
	f, err := bucket.OpenFolder(ctx, o.URL)
	if err != nil {
		state.Release()
		return Part{}, err
	}
	defer func() { _ = f.Close() }() // what was written is closed by then
	var part Part
	end := partEnd{Taken: time.Now().UnixMilli(), Choice: choice(o.Galleries)}
	at := place{o.Backup, PartName(o.Shard)}
	given := false
	err = f.Create(ctx, o.Backup+"/"+at.part, func(w io.Writer) error {
		out, err := newPartWriter(w, keyOf(master, o.Backup), at)
		if err != nil {
			return err
		}
		given = true
		part, err = copyShard(out, state, choose(o.Galleries), end)
		return err
	})
	if !given {
		state.Release()
	}
	return part, err
}

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

// choice names a choice of galleries.
func choice(galleries []id.Gallery) [32]byte {
	h := sha256.New()
	for _, g := range slices.SortedFunc(slices.Values(galleries), func(a, b id.Gallery) int { return slices.Compare(a.UUID[:], b.UUID[:]) }) {
		h.Write(g.UUID[:])
	}
	return [32]byte(h.Sum(nil))
}

// run is a backup being made.
type run struct {
	Options
	source Source
	folder *bucket.Folder
	key    *seal.Key
	check  Digest // KeyCheck of the key at the beginning

	mu    sync.Mutex
	parts map[id.Shard]Part
	done  int
	total int
}

// Run makes a backup, or goes on with one that was not finished: parts that are there
// and whole stay. One that is finished already is given as it is. Shards come first
// and meta last, so that meta knows of everything that a shard has; where meta knows
// of slots that a shard gave back after its part was taken, that part is taken again:
// the sum of a gallery's slots is never more than its size.
func Run(ctx context.Context, o Options, source Source) (Manifest, error) {
	if err := checkName(o.Name); err != nil {
		return Manifest{}, err
	}
	f, err := bucket.OpenFolder(ctx, o.URL)
	if err != nil {
		return Manifest{}, err
	}
	defer func() { _ = f.Close() }() // what was written is closed by then
	if m, err := readManifest(ctx, f, o.Name, o.Master); !errors.Is(err, ErrUnfinished) {
		return m, err
	}
	r := &run{Options: o, source: source, folder: f, key: keyOf(o.Master, o.Name), check: KeyCheck(o.Master), parts: map[id.Shard]Part{}}
	return r.run(ctx)
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
	if KeyCheck(r.Master) != r.check {
		return Manifest{}, ErrKeyChanges
	}
	m.Digest, err = writeManifest(ctx, r.folder, m, r.Master)
	return m, err
}

// cluster reads what the cluster is.
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

// cut takes the parts of shards, then meta's, until none is older than what meta says.
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
	return Part{}, fmt.Errorf("slots of galleries moved between shards all the time: shards %v; try again", shards)
}

// takeAll takes the parts of shards, a few at once; with again, those that are there
// are taken anew.
func (r *run) takeAll(ctx context.Context, shards []id.Shard, again bool) error {
	return inParallel(ctx, shards, func(ctx context.Context, s id.Shard) error {
		part, ok := Part{}, false
		if !again {
			part, ok = r.there(ctx, s)
		}
		if !ok {
			ctx, cancel := context.WithTimeout(ctx, partTimeout)
			defer cancel()
			var err error
			part, err = r.source.Part(ctx, Order{URL: r.URL, Backup: r.Name, Shard: s, Galleries: r.Galleries, Key: r.check})
			if err != nil {
				return fmt.Errorf("take the part of shard %d: %w", s, err)
			}
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.parts[s] = part
		r.progress()
		return nil
	})
}

func (r *run) progress() {
	r.done = min(r.done+1, r.total)
	if r.Progress != nil {
		r.Progress(r.done, r.total)
	}
}

// there gives the part of an earlier, unfinished run, if it is whole.
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

// meta writes meta's part and gives the grants in it.
func (r *run) meta(ctx context.Context) (part Part, grants []metafsm.GrantsOf, err error) {
	state, err := r.source.Meta(ctx)
	if err != nil {
		return Part{}, nil, err
	}
	at := place{r.Name, metaName}
	given := false
	err = r.folder.Create(ctx, r.Name+"/"+metaName, func(w io.Writer) error {
		out, err := newPartWriter(w, r.key, at)
		if err != nil {
			return err
		}
		given = true
		m := metaCopier{out: out, want: choose(r.Galleries), master: r.Master}
		part, grants, err = m.copy(state, partEnd{Taken: time.Now().UnixMilli(), Choice: choice(r.Galleries)})
		return err
	})
	if !given {
		state.Release()
	}
	if err == nil {
		r.progress()
	}
	return part, grants, err
}

// metaCopier writes meta's part. Of a choice of galleries it has these with their
// tenants, and no access keys.
type metaCopier struct {
	out    *partWriter
	want   chosen
	master *seal.Master
}

// opens tells whether the key that seals the backup opens a record's secret: while the
// cluster's key is being changed, the one before has still wrapped some.
func (m metaCopier) opens(c metafsm.Copied) bool {
	var secret []byte
	switch {
	case c.AccessKey != nil:
		secret = c.AccessKey.SealedSecret
	case c.Gallery != nil:
		secret = c.Gallery.WrappedKey
	case c.Application != nil:
		secret = c.Application.SealedKey
	}
	return len(secret) == 0 || m.master.Current(secret)
}

// copy writes the part of a state, which it releases.
func (m metaCopier) copy(s State, end partEnd) (Part, []metafsm.GrantsOf, error) {
	want := m.want
	var part Part
	var grants []metafsm.GrantsOf
	tenants := map[id.Tenant]metafsm.Copied{} // that were not written yet
	found := 0
	write := func(c metafsm.Copied) error {
		if !m.opens(c) {
			return ErrKeyChanges
		}
		part.Records++
		return m.out.record(c.Encode())
	}
	take := func(c metafsm.Copied) error {
		switch {
		case want == nil:
		case c.Tenant != nil:
			tenants[c.Tenant.ID] = c
			return nil
		case c.AccessKey != nil, c.Gallery != nil && !want[c.Gallery.ID], c.Grants != nil && !want[c.Grants.Gallery],
			c.Tags != nil && !want[c.Tags.Gallery], c.Application != nil && !want[c.Application.Gallery]:
			return nil
		case c.Gallery != nil:
			found++
			if t, ok := tenants[c.Gallery.Tenant]; ok {
				delete(tenants, c.Gallery.Tenant)
				if err := write(t); err != nil {
					return err
				}
			}
		}
		if c.Grants != nil {
			grants = append(grants, *c.Grants)
		}
		return write(c)
	}
	err := stream(s, func(r io.Reader) error { return metafsm.ReadAllCopied(r, take) })
	if err == nil && want != nil && found != len(want) {
		err = fmt.Errorf("%d of the %d galleries are there", found, len(want))
	}
	if err != nil {
		return Part{}, nil, err
	}
	part, err = part.finish(m.out, end)
	return part, grants, err
}

// stale gives the shards whose parts have slots that meta has taken back since.
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
	return slices.Sorted(maps.Keys(old))
}

// inParallel calls f for each shard, partsAtOnce at a time, and gives the first error
// after all have ended.
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

// Verify reads all of a backup and compares it with its manifest. The error names the
// first part that is damaged or missing.
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

// visitPart reads a part of the store.
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
