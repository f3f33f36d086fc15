package backup

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"facet/internal/id"
	"facet/node/bucket"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
	"facet/router"
	"facet/shard"
	"facet/shard/seal"
)

// A restoration goes through the log, in entries that may come twice: so it can be
// done again from the beginning after any crash, on a cluster with other nodes, and
// while replicas move. Meta notes at the start that it is under way, the shards get
// their events, and meta's records come last, access keys and applications at the
// very end: before that nobody can reach a gallery that is half there.
const (
	loadBytesMax   = 160 << 10 // of the entries of one command
	loadEntriesMax = 512
	entryBytes     = 128 // of an entry in a command, at most, without its face and tags
)

// ErrNotEmpty says that a cluster has tenants, or that another backup is being
// restored into it.
var ErrNotEmpty = errors.New("backup: the cluster is not empty, or another restoration is under way")

// Target is a cluster into which a backup is restored.
type Target interface {
	// Cluster says what was founded.
	Cluster(ctx context.Context) (metafsm.Cluster, error)
	// Propose has the leader of a group carry out a command, and waits for the answer;
	// one whose outcome is unknown is proposed again.
	Propose(ctx context.Context, group id.Shard, cmd []byte) ([]byte, error)
	// Sums gives the slices of a shard on a state that has every write acknowledged
	// before the call.
	Sums(ctx context.Context, s id.Shard) ([]Slice, error)
	// HasGallery tells whether there is a gallery of that id, or of that tenant and name.
	HasGallery(ctx context.Context, g metafsm.Gallery) (bool, error)
}

// RestoreOptions say what is to be restored.
type RestoreOptions struct {
	URL, Name string
	// Gallery is the only one that is wanted, by its id or name; empty is all.
	Gallery string
	// From is the key of the cluster that made the backup, To that of the one it goes to.
	From, To *seal.Master
	// Erased are left out, and so is, unless WithErased is set, who was erased since as
	// far as newer backups in the folder know.
	Erased     []Erasure
	WithErased bool
	// Progress is told of each part that is done; it may be nil.
	Progress func(done, total int)
}

// restoration is one under way.
type restoration struct {
	RestoreOptions
	target   Target
	folder   *bucket.Folder
	manifest Manifest
	key      *seal.Key
	id       [32]byte
	began    int64
	erased   map[Erasure]bool
	since    *newerBackup // nil: none is asked
	sealed   []string     // newer backups that can't be asked
	shards   int          // of the cluster
	want     chosen       // the galleries of meta's part that are wanted
	records  []metafsm.Copied
	expected map[id.Shard][]Slice
	done     chan Restored // of each shard
}

// Restore puts a backup into a cluster. The cluster must be founded with at least as
// many shards (a subject's id names its shard) and the same model pack; for all galleries
// it must be empty. All of the backup is verified first. The same call again goes on
// with a restoration that was interrupted.
func Restore(ctx context.Context, o RestoreOptions, target Target) (Restored, error) {
	f, err := bucket.OpenFolder(ctx, o.URL)
	if err != nil {
		return Restored{}, err
	}
	defer func() { _ = f.Close() }() // what was written is closed by then
	m, err := readManifest(ctx, f, o.Name, o.From)
	if err != nil {
		return Restored{}, err
	}
	cluster, err := target.Cluster(ctx)
	if err == nil {
		err = fits(m, o, cluster)
	}
	if err != nil {
		return Restored{}, err
	}
	progress := func(done, _ int) {
		if o.Progress != nil {
			o.Progress(done, 2*m.Head.Parts)
		}
	}
	if _, err := Verify(ctx, f, o.Name, o.From, progress); err != nil {
		return Restored{}, err
	}
	r := &restoration{
		RestoreOptions: o, target: target, folder: f, manifest: m, key: keyOf(o.From, o.Name), shards: cluster.Shards,
		began: time.Now().UnixMilli(), erased: map[Erasure]bool{}, want: chosen{},
		expected: map[id.Shard][]Slice{}, done: make(chan Restored, m.Shards),
	}
	for _, e := range o.Erased {
		r.erased[e] = true
	}
	return r.run(ctx)
}

// fits refuses a cluster that can't take the backup.
func fits(m Manifest, o RestoreOptions, c metafsm.Cluster) error {
	switch {
	case c.Shards < m.Shards:
		return fmt.Errorf("the backup is of a cluster with %d shards, this one has %d: the ids of subjects name their shard, "+
			"so found a cluster with --shards %d or more (the number of nodes does not matter)", m.Shards, c.Shards, m.Shards)
	case c.Pack != m.Pack:
		return fmt.Errorf("the backup's templates are of model pack %.12s, this cluster has %.12s: they can't be compared", m.Pack, c.Pack)
	case o.Gallery == "" && len(m.Galleries) > 0:
		return errors.New("the backup has some galleries only, without access keys: restore them one by one")
	}
	return nil
}

// name names what is restored, so that something else is not taken for its rest.
func (r *restoration) name() [32]byte {
	h := sha256.New()
	h.Write(r.manifest.Digest[:])
	h.Write([]byte(r.Gallery))
	if r.since != nil {
		h.Write(r.since.Digest[:])
	}
	list := slices.Clone(r.Erased)
	slices.SortFunc(list, compareErasures)
	for _, e := range list {
		h.Write(e.Gallery.UUID[:])
		h.Write(e.Subject.UUID[:])
	}
	return [32]byte(h.Sum(nil))
}

func (r *restoration) run(ctx context.Context) (Restored, error) {
	if err := r.readMeta(ctx); err != nil {
		return Restored{}, err
	}
	now, err := r.begin(ctx)
	if err != nil {
		return Restored{}, err
	}
	var shards []id.Shard
	for s := range r.manifest.Shards {
		shards = append(shards, id.Shard(s+1))
	}
	out := Restored{Backup: r.Name, Digest: r.manifest.Digest, Galleries: len(r.want), Sealed: r.sealed}
	if r.since != nil {
		out.Since = r.since.Name
	}
	if now.Done {
		return out, nil
	}
	if err := inParallel(ctx, shards, r.shard); err != nil {
		return out, err
	}
	close(r.done)
	for of := range r.done {
		out.Active, out.Deleted, out.Erased = out.Active+of.Active, out.Deleted+of.Deleted, out.Erased+of.Erased
	}
	return out, r.loadMeta(ctx, now.Loaded)
}

// keysMax bounds how often the cluster's key may be changed while its records are loaded.
const keysMax = 3

// readMeta reads meta's part, in the order in which it is to be loaded.
func (r *restoration) readMeta(ctx context.Context) error {
	var first, last []metafsm.Copied
	tenants := map[id.Tenant]bool{}
	take := func(c metafsm.Copied) error {
		switch {
		case c.Cluster != nil:
			return nil
		case c.Gallery != nil && (r.Gallery == "" || r.Gallery == c.Gallery.ID.String() || r.Gallery == c.Gallery.Name):
			r.want[c.Gallery.ID] = true
			tenants[c.Gallery.Tenant] = true
		}
		if c.Gallery != nil {
			widen(c.Gallery, r.manifest.Shards, r.shards)
		}
		if err := (router.Rewrap{From: r.From, To: r.To}).Record(c); err != nil {
			return err
		}
		if c.Application != nil || c.AccessKey != nil {
			last = append(last, c)
		} else {
			first = append(first, c)
		}
		return nil
	}
	if _, err := visitPart(ctx, r.folder, r.key, place{r.Name, metaName}, visit{meta: take}); err != nil {
		return err
	}
	r.records = slices.Concat(first, last)
	if r.Gallery == "" {
		return nil
	}
	if len(r.want) != 1 {
		return fmt.Errorf("the backup has %d galleries %q: give the id of one", len(r.want), r.Gallery)
	}
	r.records = slices.DeleteFunc(r.records, func(c metafsm.Copied) bool {
		return c.AccessKey != nil || c.Tenant != nil && !tenants[c.Tenant.ID] || c.Gallery != nil && !r.want[c.Gallery.ID] ||
			c.Grants != nil && !r.want[c.Grants.Gallery] || c.Tags != nil && !r.want[c.Tags.Gallery] ||
			c.Application != nil && !r.want[c.Application.Gallery]
	})
	return nil
}

// widen has a gallery lie on so many shards of a cluster with more of them that those
// on which it lay are among them: its list is a prefix of a fixed order, in which the
// additional shards have their places, too.
func widen(g *metafsm.Gallery, from, to int) {
	if from == to {
		return
	}
	before := metafsm.ShardsOf(g.ID, g.Shards, from)
	for g.Shards = len(before); ; g.Shards++ {
		now := metafsm.ShardsOf(g.ID, g.Shards, to)
		if !slices.ContainsFunc(before, func(s id.Shard) bool { return !slices.Contains(now, s) }) {
			break
		}
	}
	g.Settled = 0 // nobody knows it with fewer
}

// begin notes in meta that the restoration is under way. One that was begun when other
// backups were the newest is gone on with as it was begun.
func (r *restoration) begin(ctx context.Context) (metafsm.Restoration, error) {
	candidates, sealed, err := r.newer(ctx)
	if err != nil {
		return metafsm.Restoration{}, err
	}
	r.sealed = sealed
	for _, since := range append(candidates, nil) {
		r.since = since
		r.id = r.name()
		now, err := r.beginAs(ctx)
		if !errors.Is(err, ErrNotEmpty) {
			return now, err
		}
	}
	return metafsm.Restoration{}, ErrNotEmpty
}

// beginAs begins the restoration r.id.
func (r *restoration) beginAs(ctx context.Context) (metafsm.Restoration, error) {
	if r.Gallery != "" {
		for _, c := range r.records {
			if c.Gallery == nil {
				continue
			}
			if has, err := r.target.HasGallery(ctx, *c.Gallery); err != nil || has {
				return metafsm.Restoration{}, errors.Join(err, fmt.Errorf("the cluster has gallery %q (%s) already: delete it first, "+
					"or restore into another cluster", c.Gallery.Name, c.Gallery.ID))
			}
		}
	}
	a, err := r.meta(ctx, metafsm.Load{Backup: r.id, Whole: r.Gallery == "", Time: r.began})
	if err == nil && a.Status == metafsm.Exists {
		err = ErrNotEmpty
	}
	return a.Restoration, err
}

func (r *restoration) meta(ctx context.Context, c metafsm.Load) (metafsm.LoadAnswer, error) {
	raw, err := r.target.Propose(ctx, id.Meta, metafsm.LoadOp.Encode(c))
	if err != nil {
		return metafsm.LoadAnswer{}, err
	}
	return metafsm.LoadOp.Answer(raw)
}

// loadMeta loads meta's records.
func (r *restoration) loadMeta(ctx context.Context, have uint64) error {
	for keys := 0; have < uint64(len(r.records)); {
		c := metafsm.Load{Backup: r.id, Whole: r.Gallery == "", Time: r.began, Have: have}
		for n, rest := 0, r.records[have:]; len(c.Records) < len(rest) && len(c.Records) < loadEntriesMax; {
			b := rest[len(c.Records)].Encode()
			if n += len(b); n > loadBytesMax && len(c.Records) > 0 {
				break
			}
			c.Records = append(c.Records, b)
		}
		a, err := r.meta(ctx, c)
		if err != nil {
			return err
		}
		if a.Status == metafsm.OtherKey && keys < keysMax {
			keys++ // To has the new one by now
			if err := r.readMeta(ctx); err != nil {
				return fmt.Errorf("the cluster's key was changed meanwhile: give the order again, with the key of the backup: %w", err)
			}
		} else if a.Status != metafsm.Done {
			return fmt.Errorf("record %d of meta does not fit into this cluster: %s", a.Restoration.Loaded, a.Status)
		}
		have = a.Restoration.Loaded
	}
	a, err := r.meta(ctx, metafsm.Load{Backup: r.id, Whole: r.Gallery == "", Time: r.began, Have: have, Done: true})
	if err == nil && !a.Restoration.Done {
		err = fmt.Errorf("the restoration did not end: %s", a.Status)
	}
	return err
}

// loader loads the slices of one shard.
type loader struct {
	*restoration
	ctx   context.Context //nolint:containedctx // it lives as long as one call
	shard id.Shard
	out   Restored

	slice *shard.CopiedSlice // nil: not wanted
	sum   *tally
	skip  uint64 // entries that are there already
	last  uint64 // shard.Loaded's
	have  uint64
	base  uint64
	alive map[Erasure]bool // the active subjects of galleries in known, by a newer backup
	known map[id.Gallery]bool
	batch []shard.CopiedEntry
	bytes int
	sums  []Slice
}

// shard restores the slices of one shard and compares them afterwards.
func (r *restoration) shard(ctx context.Context, s id.Shard) error {
	l := &loader{restoration: r, ctx: ctx, shard: s}
	if err := l.readSince(); err != nil {
		return fmt.Errorf("restore shard %d: read who was erased since: %w", s, err)
	}
	v := visit{slice: l.begin, entry: l.entry, end: func(Slice) error { return l.end() }}
	if _, err := visitPart(ctx, r.folder, r.key, place{r.Name, PartName(s)}, v); err != nil {
		return fmt.Errorf("restore shard %d: %w", s, err)
	}
	is, err := r.target.Sums(ctx, s)
	if err != nil {
		return fmt.Errorf("verify shard %d: %w", s, err)
	}
	for _, want := range l.sums {
		if !slices.Contains(is, want) {
			return fmt.Errorf("shard %d has gallery %s otherwise than it was restored", s, want.Gallery)
		}
	}
	r.done <- l.out
	if r.Progress != nil {
		r.Progress(r.manifest.Head.Parts+len(r.done), 2*r.manifest.Head.Parts)
	}
	return nil
}

// begin makes a slice, and learns what is there of it.
func (l *loader) begin(s *shard.CopiedSlice) error {
	l.slice, l.batch, l.bytes = nil, nil, 0
	if !l.want[s.Gallery] { // deleted between the shard's part and meta's, or not wanted
		return nil
	}
	l.slice, l.sum = s, newTally(s)
	l.slice.Entries = 0
	a, err := l.propose(shardfsm.Load{Slice: *s})
	if err != nil {
		return err
	}
	l.skip, l.have, l.last, l.base = a.Entries, a.Entries, a.Last, a.Last
	return nil
}

// propose loads entries. Having others than expected is no error.
func (l *loader) propose(c shardfsm.Load) (shardfsm.LoadAnswer, error) {
	raw, err := l.target.Propose(l.ctx, l.shard, shardfsm.LoadOp.Encode(c))
	if err != nil {
		return shardfsm.LoadAnswer{}, err
	}
	a, err := shardfsm.LoadOp.Answer(raw)
	switch {
	case err != nil:
		return a, err
	case a.Status == shardfsm.StaleGeneration:
		return a, fmt.Errorf("gallery %s was deleted in this cluster: restore it into another one", c.Slice.Gallery)
	case a.Status != shardfsm.Done && a.Status != shardfsm.Moved:
		return a, fmt.Errorf("entries of gallery %s do not fit: %s", c.Slice.Gallery, a.Status)
	}
	return a, nil
}

func (l *loader) entry(e *shard.CopiedEntry) error {
	if l.slice == nil {
		return nil
	}
	if !e.Deleted && l.isErased(Erasure{Gallery: l.slice.Gallery, Subject: e.Subject}) {
		l.out.Erased++
		return nil
	}
	l.sum.add(e)
	if l.skip > 0 {
		if l.skip--; l.skip == 0 {
			l.base = l.last - e.First
		}
		return nil
	}
	bytes := len(e.Sealed) + 5*len(e.Tags) + entryBytes
	if l.bytes+bytes > loadBytesMax || len(l.batch) == loadEntriesMax {
		if err := l.flush(); err != nil {
			return err
		}
	}
	l.batch = append(l.batch, *e)
	l.bytes += bytes
	return nil
}

func (l *loader) flush() error {
	if len(l.batch) == 0 {
		return nil
	}
	want := l.have + uint64(len(l.batch))
	a, err := l.propose(shardfsm.Load{Slice: *l.slice, Have: l.have, Base: l.base, Entries: l.batch})
	if err != nil {
		return err
	}
	if a.Entries != want {
		return fmt.Errorf("gallery %s has %d entries, not %d: somebody else restores it, too", l.slice.Gallery, a.Entries, want)
	}
	l.have, l.batch, l.bytes = want, nil, 0
	return nil
}

func (l *loader) end() error {
	if l.slice == nil {
		return nil
	}
	if err := l.flush(); err != nil {
		return err
	}
	s := l.sum.end()
	l.out.Active, l.out.Deleted = l.out.Active+s.Active, l.out.Deleted+s.Deleted
	l.sums = append(l.sums, s)
	l.slice = nil
	return nil
}
