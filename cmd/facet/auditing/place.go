package auditing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"facet/internal/tiles"
	"facet/node/bucket"
)

// Place is where an exported log lies: a Folder or a Bucket.
type Place interface {
	Source
	fmt.Stringer
	Close()

	// write writes a tile or a bundle. It is safe for concurrent use.
	write(ctx context.Context, t tlog.Tile, b []byte) error
	// save writes a small file, whole or not at all.
	save(ctx context.Context, name string, b []byte) error
	// commit makes durable what was written, and then the checkpoint over it.
	commit(ctx context.Context, signed []byte) error
	// remove removes a tile or a bundle, if it is there.
	remove(ctx context.Context, name string) error
}

// IsURL reports whether a place is named by a URL.
func IsURL(where string) bool { return strings.Contains(where, "://") }

// MakePlace opens the log in a folder, which it makes when missing, or at the URL of an object store's folder, such
// as s3://BUCKET/DIR.
func MakePlace(ctx context.Context, where string) (Place, error) {
	if IsURL(where) {
		return openBucket(ctx, bucket.MakeFolder, where)
	}
	return MakeFolder(where)
}

// OpenPlace opens the log that an export has left.
func OpenPlace(ctx context.Context, where string) (Place, error) {
	if IsURL(where) {
		return OpenBucket(ctx, where)
	}
	return OpenFolder(where)
}

// placeCheckpoint returns the checkpoint of a place, or that of an empty log.
func placeCheckpoint(ctx context.Context, p Place, key string) (c tiles.Checkpoint, err error) {
	text, err := p.Read(ctx, tiles.CheckpointPath, tiles.CheckpointBytesMax)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err == nil {
		c, _, err = tiles.Open(text, key)
	}
	if err != nil {
		return c, fmt.Errorf("the checkpoint in %s: %w", p, err)
	}
	return c, nil
}

// prune removes the partial tiles and bundles of an older size that a tree of size entries has no
// more.
func prune(ctx context.Context, p Place, older, size int64) error {
	for level := tiles.EntryLevel; older>>(tiles.Height*max(level, 0)) > 0; level++ {
		t := tiles.In(level, older>>(tiles.Height*(max(level, 0)+1)), older)
		if t.W == 0 || t == tiles.In(level, t.N, size) {
			continue
		}
		if err := p.remove(ctx, tiles.Path(t)); err != nil {
			return err
		}
	}
	return nil
}

// Bucket is a log in an object store. An object is durable, and whole, when its write has returned.
type Bucket struct {
	name   string
	folder *bucket.Folder
}

// OpenBucket opens the log at the URL of an object store's folder. Credentials come from the environment.
func OpenBucket(ctx context.Context, address string) (*Bucket, error) {
	return openBucket(ctx, bucket.OpenFolder, address)
}

func openBucket(ctx context.Context, open bucket.Opener, address string) (*Bucket, error) {
	f, err := open(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("open the object store: %w", err)
	}
	name, _, _ := strings.Cut(address, "?") // parameters may have a secret
	if u, err := url.Parse(name); err == nil {
		name = u.Redacted()
	}
	return &Bucket{name, f}, nil
}

// String returns the URL without its parameters.
func (b *Bucket) String() string { return b.name }

// Close ends the use of the object store.
func (b *Bucket) Close() { _ = b.folder.Close() }

// Read implements Source.
func (b *Bucket) Read(ctx context.Context, name string, limit int) ([]byte, error) {
	r, size, err := b.folder.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if size > int64(limit) {
		return nil, tooLong(name, limit)
	}
	return readAtMost(r, name, limit)
}

func (b *Bucket) write(ctx context.Context, t tlog.Tile, content []byte) error {
	return b.save(ctx, tiles.Path(t), content)
}

func (b *Bucket) save(ctx context.Context, name string, content []byte) error {
	return b.folder.Create(ctx, name, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

func (b *Bucket) commit(ctx context.Context, signed []byte) error {
	return b.save(ctx, tiles.CheckpointPath, signed)
}

func (b *Bucket) remove(ctx context.Context, name string) error { return b.folder.Delete(ctx, name) }
