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
	"slices"
	"strings"
	"sync"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"facet/internal/id"
	"facet/router/jobs"
)

// ErrName is returned for a filename that might lead outside the tenant's folder.
var ErrName = errors.New("bucket: unusable filename")

// firstBytes is how much memory is taken before a file's size is known.
const firstBytes = 64 << 10

// Store is an object store. It is safe for concurrent use.
type Store struct {
	// folder is the root of a file:// store, else empty.
	folder string
	url    string

	// mu guards bucket. The bucket is opened at its first use: an unreachable store
	// must not keep a node from starting.
	mu     sync.Mutex
	bucket *blob.Bucket
}

// fullOnly lists the schemes that a build with the tag slim does not know.
var fullOnly = []string{"gs", "azblob"}

// Check returns an error if this program can't open object stores of the scheme of
// address. The error doesn't repeat the address, which may contain a secret.
func Check(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return errors.New("the object store's address is no URL")
	case blob.DefaultURLMux().ValidBucketScheme(u.Scheme):
		return nil
	case slices.Contains(fullOnly, u.Scheme):
		return fmt.Errorf("this facet is a slim build without %s://: use one made by \"make build\", or an object store at s3:// or file:///DIR", u.Scheme)
	}
	return fmt.Errorf("there is no object store of the kind %s://", u.Scheme)
}

// WithoutSecrets returns the address of a store or folder without its user, parameters and fragment, which
// may be secrets. It is empty for what is no URL.
func WithoutSecrets(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// Open returns the store at address and does not connect to it; the first read
// does. address is file:///DIR, or what gocloud.dev opens: s3://, gs://, azblob://
// with their parameters.
func Open(address string) (*Store, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("the object store's address is no URL") // the address may contain a secret
	}
	switch {
	case u.Scheme == "":
		return nil, errors.New("the object store's address has no scheme: file:///DIR, s3://BUCKET, gs://BUCKET or azblob://CONTAINER")
	case u.Scheme != "file":
		if err := Check(address); err != nil {
			return nil, err
		}
		return &Store{url: address}, nil
	case u.Host != "" || !filepath.IsAbs(filepath.FromSlash(u.Path)):
		return nil, errors.New("the object store's folder must be absolute: file:///DIR")
	}
	return &Store{folder: filepath.FromSlash(u.Path)}, nil
}

// Read returns the content of a tenant's file of at most limit bytes (jobs.Files).
func (s *Store) Read(ctx context.Context, tenant id.Tenant, name string, limit int) ([]byte, error) {
	// The rules of io/fs: no empty, "." or ".." part, no slash at either end.
	if !fs.ValidPath(name) || name == "." || strings.ContainsAny(name, "\\\x00") {
		return nil, fmt.Errorf("%w: %w", ErrName, fs.ErrNotExist)
	}
	r, err := s.open(ctx, tenant, name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return readAll(r, limit)
}

func (s *Store) open(ctx context.Context, tenant id.Tenant, name string) (io.ReadCloser, error) {
	if s.folder != "" {
		return s.openFile(tenant, name)
	}
	b, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	r, err := b.NewReader(ctx, tenant.String()+"/"+name, nil)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return nil, fmt.Errorf("open file of a job: %w", fs.ErrNotExist)
	}
	if err != nil {
		return nil, &fileError{"open file of a job", err}
	}
	return r, nil
}

// openFile opens a regular file within the tenant's folder. A symbolic link can't
// lead outside.
func (s *Store) openFile(tenant id.Tenant, name string) (io.ReadCloser, error) {
	root, err := os.OpenRoot(filepath.Join(s.folder, tenant.String()))
	if err != nil {
		return nil, fmt.Errorf("open the tenant's folder: %w", err)
	}
	defer func() { _ = root.Close() }() // it was only read
	// A file of another kind (a pipe, say) might block when it is opened.
	info, err := root.Stat(filepath.FromSlash(name))
	if err != nil {
		return nil, &fileError{"open file of a job", err}
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("open file of a job: it is no regular file: %w", fs.ErrNotExist)
	}
	f, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, &fileError{"open file of a job", err}
	}
	return f, nil
}

func (s *Store) connect(ctx context.Context) (*blob.Bucket, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bucket != nil {
		return s.bucket, nil
	}
	b, err := blob.OpenBucket(context.WithoutCancel(ctx), s.url)
	if err != nil {
		return nil, openError(s.url, err)
	}
	s.bucket = b
	return b, nil
}

// openError returns the error of opening the object store at address. Its text has no address, which may
// contain a secret: drivers repeat it, and errors are logged.
func openError(address string, err error) error {
	text := err.Error()
	u, parseErr := url.Parse(address)
	if parseErr == nil {
		text = strings.ReplaceAll(text, u.String(), u.Scheme+"://…")
	}
	return errors.New("open the object store: " + strings.ReplaceAll(text, address, "…"))
}

// readAll reads at most limit bytes. It takes memory as they come.
func readAll(r io.Reader, limit int) ([]byte, error) {
	b := make([]byte, 0, min(firstBytes, limit+1))
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case len(b) > limit:
			return nil, fmt.Errorf("read file of a job: %w", jobs.ErrTooLarge)
		case errors.Is(err, io.EOF):
			return b, nil
		case err != nil:
			return nil, &fileError{"read file of a job", err}
		}
	}
}

// Close closes the store.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bucket == nil {
		return nil
	}
	return s.bucket.Close()
}
