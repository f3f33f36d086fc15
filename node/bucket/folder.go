package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/gcerrors"
)

const (
	// listMax is the most names that a listing may return.
	listMax = 100_000
	// listTries is how often a listing is tried when names disappear meanwhile.
	listTries = 10
)

// Folder is a writable place in an object store. It is safe for concurrent use.
type Folder struct{ bucket *blob.Bucket }

// Opener opens a place in an object store.
type Opener func(ctx context.Context, address string) (*Folder, error)

// OpenFolder opens the place at address: file:///DIR, or SCHEME://BUCKET/PATH with the
// parameters of gocloud.dev. The caller closes it. Errors don't repeat the address, which may
// contain a secret. A missing folder of files is fs.ErrNotExist.
func OpenFolder(ctx context.Context, address string) (*Folder, error) {
	return open(ctx, address, false)
}

// MakeFolder is OpenFolder that creates a missing folder of files.
func MakeFolder(ctx context.Context, address string) (*Folder, error) {
	return open(ctx, address, true)
}

func open(ctx context.Context, address string, create bool) (*Folder, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("the object store's address is no URL")
	}
	switch {
	case u.Scheme == "file" && u.Host == "" && filepath.IsAbs(filepath.FromSlash(u.Path)):
		b, err := fileblob.OpenBucket(filepath.FromSlash(u.Path), &fileblob.Options{
			CreateDir: create, NoTempDir: true, Metadata: fileblob.MetadataDontWrite, DirFileMode: 0o700,
		})
		if err != nil {
			return nil, fmt.Errorf("open the folder: %w", err)
		}
		return &Folder{b}, nil
	case u.Scheme == "file":
		return nil, errors.New("the object store's folder must be absolute: file:///DIR")
	}
	if err := Check(address); err != nil {
		return nil, err
	}
	prefix := strings.Trim(u.Path, "/")
	u.Path = ""
	b, err := blob.OpenBucket(ctx, u.String())
	if err != nil {
		return nil, openError(u.String(), err)
	}
	if prefix != "" {
		b = blob.PrefixedBucket(b, prefix+"/")
	}
	return &Folder{b}, nil
}

// Close closes the store.
func (f *Folder) Close() error { return f.bucket.Close() }

// Create writes an object through write. The object exists only after write has
// returned without an error and all bytes have arrived.
func (f *Folder) Create(ctx context.Context, name string, write func(io.Writer) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := f.bucket.NewWriter(ctx, name, &blob.WriterOptions{ContentType: "application/octet-stream"})
	if err != nil {
		return fmt.Errorf("create %s: %w", name, err)
	}
	if err := write(w); err != nil {
		cancel() // otherwise Close would store a truncated object
		_ = w.Close()
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// Open opens an object and returns its length. A missing object is fs.ErrNotExist.
func (f *Folder) Open(ctx context.Context, name string) (io.ReadCloser, int64, error) {
	r, err := f.bucket.NewReader(ctx, name, nil)
	if gcerrors.Code(err) == gcerrors.NotFound || errors.Is(err, os.ErrNotExist) {
		return nil, 0, fmt.Errorf("open %s: %w", name, fs.ErrNotExist)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("open %s: %w", name, err)
	}
	return r, r.Size(), nil
}

// Folders returns the names of the folders directly below, in order.
func (f *Folder) Folders(ctx context.Context) ([]string, error) {
	return f.list(ctx, &blob.ListOptions{Delimiter: "/"}, func(o *blob.ListObject) (string, bool) {
		return strings.TrimSuffix(o.Key, "/"), o.IsDir
	})
}

// Remove removes all objects of a folder. It removes the object named first before
// the others: without it the folder counts as unfinished.
func (f *Folder) Remove(ctx context.Context, folder, first string) error {
	names, err := f.list(ctx, &blob.ListOptions{Prefix: folder + "/"}, func(o *blob.ListObject) (string, bool) {
		return o.Key, !o.IsDir
	})
	if err != nil {
		return err
	}
	for _, name := range append([]string{folder + "/" + first}, names...) {
		if err := f.Delete(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// Delete removes an object, if it is there.
func (f *Folder) Delete(ctx context.Context, name string) error {
	if err := f.bucket.Delete(ctx, name); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	return nil
}

// list starts again when a name disappears before it is read, as happens when
// another process renames files in a directory.
func (f *Folder) list(ctx context.Context, o *blob.ListOptions, take func(*blob.ListObject) (string, bool)) (names []string, err error) {
	for range listTries {
		if names, err = f.listOnce(ctx, o, take); gcerrors.Code(err) != gcerrors.NotFound {
			break
		}
	}
	return names, err
}

func (f *Folder) listOnce(ctx context.Context, o *blob.ListOptions, take func(*blob.ListObject) (string, bool)) ([]string, error) {
	var names []string
	for it := f.bucket.List(o); ; {
		object, err := it.Next(ctx)
		if errors.Is(err, io.EOF) {
			return names, nil
		}
		if err != nil {
			return nil, fmt.Errorf("list the object store: %w", err)
		}
		if name, ok := take(object); ok {
			names = append(names, name)
		}
		if len(names) > listMax {
			return nil, fmt.Errorf("the object store has more than %d names here", listMax)
		}
	}
}
