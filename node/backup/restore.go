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
	"facet/router/secrets"
	"facet/shard"
	"facet/shard/seal"
)

// A restoration sends idempotent commands through the log. So it can be repeated from the
// start after any crash, on a cluster with other nodes, and while replicas move.
//  1. Meta records that a restoration is under way.
//  2. The shards load their events.
//  3. Meta loads its records, access keys and applications last. Before that no client can
//     reach a gallery of which only a part is loaded.
const (
	loadBytesMax   = 160 << 10 // of the entries of one command
	loadEntriesMax = 512
	entryBytes     = 128 // most bytes of an entry in a command, without its face and tags
)

// ErrNotEmpty is returned for a cluster that has tenants, or into which another backup is
// being restored.
var ErrNotEmpty = errors.New("backup: the cluster is not empty, or another restoration is under way")

// Target is a cluster into which a backup is restored.
type Target interface {
	// Cluster returns the cluster's record.
	Cluster(ctx context.Context) (metafsm.Cluster, error)
	// Propose lets the leader of a group carry out a command and returns its answer. It
	// repeats a command whose outcome is unknown.
	Propose(ctx context.Context, group id.Shard, cmd []byte) ([]byte, error)
	// Sums returns the slices of a shard, with every write acknowledged before the call.
	Sums(ctx context.Context, s id.Shard) ([]Slice, error)
	// HasGallery reports whether there is a gallery of that id, or of that tenant and name.
	HasGallery(ctx context.Context, g metafsm.Gallery) (bool, error)
}

// RestoreOptions selects what Restore restores.
type RestoreOptions struct {
	URL, Name string
	// Gallery is the id or name of the one gallery to restore; empty is all.
	Gallery string
	// From is the key of the cluster that made the backup, To the key of the target.
	From, To *seal.Master
	// Erased lists subjects to leave out. Unless WithErased is set, Restore also leaves out
	// the subjects that newer backups in the folder show as erased.
	Erased     []Erasure
	WithErased bool
	// Progress is called after each part; it may be nil.
	Progress func(done, total int)
}

// restoration is the state of one Restore.
type restoration struct {
	RestoreOptions
	target   Target
	folder   *bucket.Folder
	manifest Manifest
	key      *seal.Key
	id       [32]byte
	began    int64
	erased   map[Erasure]bool
	since    *newerBackup // shows later erasures; nil without one
	sealed   []string     // newer backups that neither key opens
	shards   int          // of the cluster
	want     chosen       // the wanted galleries of meta's part
	records  []metafsm.Copied
	expected map[id.Shard][]Slice
	done     chan Restored // of each shard
}

// Restore loads a backup into a cluster. The cluster must have at least as many shards as
// the backup (a subject's id names its shard) and the same model pack. It must be empty
// unless only one gallery is restored. Restore verifies the whole backup first. The same
// call continues an interrupted restoration.
func Restore(ctx context.Context, o RestoreOptions, target Target) (Restored, error) {
	f, err := bucket.OpenFolder(ctx, o.URL)
	if err != nil {
		return Restored{}, err
	}
	defer func() { _ = f.Close() }() // it was only read
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

// fits returns an error for a cluster that can't take the backup.
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

// name returns a hash of what is restored. Only a restoration with the same hash continues
// an interrupted one.
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
	if r.Gallery == "" {
		out.Former = string(r.manifest.ClusterLog)
	}
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

// keysMax is the most changes of the cluster's key during a restoration. After each change
// the records are read again.
const keysMax = 3

// readMeta reads the wanted records of meta's part, in the order in which they will be
// loaded.
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
		if err := (secrets.Rewrap{From: r.From, To: r.To}).Record(c); err != nil {
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

// widen extends g's shards for a cluster with more shards. A gallery's list of shards is a
// prefix of a fixed order of all shards, so it grows until it contains every shard that the
// gallery had.
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
	g.Settled = 0 // no node has an older list
}

// begin records the restoration in meta. If an interrupted one started with another newer
// backup, begin continues it with that one.
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

// beginAs records the restoration r.id in meta, or continues it.
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

// meta lets meta's leader carry out a command.
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
			keys++ // To is the new key by now
			if err := r.readMeta(ctx); err != nil {
				return fmt.Errorf("the cluster's key changed meanwhile: give the order again, with the key of the backup: %w", err)
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
	skip  uint64 // entries that the shard has already
	last  uint64 // shard.Loaded.Last
	have  uint64
	base  uint64
	alive map[Erasure]bool // the active subjects of galleries in known, by a newer backup
	known map[id.Gallery]bool
	batch []shard.CopiedEntry
	bytes int
	noted []shard.NotedSubject // whose external ids are to be claimed
	sums  []Slice
	items map[itemsOf]uint32 // how many items were loaded
}

// shard restores the slices of one shard and verifies them afterwards.
func (r *restoration) shard(ctx context.Context, s id.Shard) error {
	l := &loader{restoration: r, ctx: ctx, shard: s, items: map[itemsOf]uint32{}}
	if err := l.readSince(); err != nil {
		return fmt.Errorf("restore shard %d: read who was erased since: %w", s, err)
	}
	v := visit{slice: l.begin, entry: l.entry, end: func(Slice) error { return l.end() }, item: l.item}
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

// begin creates a slice in the shard, or learns how many of its entries are there.
func (l *loader) begin(s *shard.CopiedSlice) error {
	l.slice, l.batch, l.bytes = nil, nil, 0
	if !l.want[s.Gallery] { // not wanted, or deleted between the shard's part and meta's
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

// propose loads entries. If the shard does not have the expected number of entries, the
// answer says so and err is nil.
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
	if err := l.note(e); err != nil {
		return err
	}
	if l.skip > 0 {
		if l.skip--; l.skip == 0 {
			l.base = l.last - e.First
		}
		return nil
	}
	bytes := len(e.Sealed) + len(e.Note) + 5*len(e.Tags) + entryBytes
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
	if err := errors.Join(l.flush(), l.claim()); err != nil {
		return err
	}
	s := l.sum.end()
	l.out.Active, l.out.Deleted = l.out.Active+s.Active, l.out.Deleted+s.Deleted
	l.sums = append(l.sums, s)
	l.slice = nil
	return nil
}
