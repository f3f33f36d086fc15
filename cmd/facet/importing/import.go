package importing

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"gocloud.dev/blob"
	_ "gocloud.dev/blob/fileblob" // file://, the folder of facet dev
	"golang.org/x/sync/errgroup"

	"facet.internal/client"
	"facet/node/bucket"
	_ "facet/node/bucket/clouds" // s3://, and without the tag slim gs:// and azblob://
)

const (
	// jobItems is how many files go into one job. The work on a short list starts
	// soon, and its body stays small.
	jobItems = 10_000
	// filesMax is the most files of one import, fileBytesMax the most bytes of one
	// file.
	filesMax     = 10_000_000
	fileBytesMax = 20 << 20
	// uploads is how many files are copied at once.
	uploads = 8
	// progressPause is how often the state of a job is read.
	progressPause = 500 * time.Millisecond
	// cleanTimeout is the longest time for removing the copies after an
	// interruption.
	cleanTimeout = time.Minute
	// failuresMax is the most failures that are printed one by one.
	failuresMax = 20
)

// suffixes are the suffixes of photos.
var suffixes = []string{".jpg", ".jpeg", ".png"}

// Config says what to register and where.
type Config struct {
	// Client calls the cluster with the gallery's API key.
	Client *client.Client
	// Bucket is the URL of the tenant's place in the object store.
	Bucket string
	// Folders are searched for photos, with all folders below them.
	Folders []string
	// Tags are set on all photos.
	Tags []string
	// Keep keeps the copies in the object store.
	Keep bool
	// Out gets lines about the progress and the failures.
	Out io.Writer
}

// Summary is the result of an import.
type Summary struct {
	Files      int `json:"files"`
	Registered int `json:"registered"`
	Failed     int `json:"failed"`
}

// photo is one file to register.
type photo struct {
	file string // on this machine
	key  string // in the object store
}

// Run registers the photos of cfg.Folders. An error means that the outcome of some
// photos is unknown. Photos that could not be registered are only counted.
func Run(ctx context.Context, cfg Config) (Summary, error) {
	photos, err := find(cfg.Folders)
	if err != nil {
		return Summary{}, err
	}
	if len(photos) == 0 {
		return Summary{}, fmt.Errorf("no photo (%s) in %s", strings.Join(suffixes, ", "), strings.Join(cfg.Folders, ", "))
	}
	if err := bucket.Check(cfg.Bucket); err != nil {
		return Summary{}, err
	}
	store, err := blob.OpenBucket(ctx, cfg.Bucket)
	if err != nil {
		return Summary{}, fmt.Errorf("open the object store: %w", err)
	}
	r := &run{Config: cfg, bucket: store, progress: newProgress(cfg.Out, len(photos)), names: map[string]string{}}
	for _, p := range photos {
		r.names[p.key] = p.file
	}
	failed := r.all(ctx, photos)
	for _, line := range r.reasons {
		fmt.Fprintln(cfg.Out, line)
	}
	if more := r.sum.Failed - len(r.reasons); more > 0 && len(r.reasons) > 0 {
		fmt.Fprintf(cfg.Out, "… and %d more\n", more)
	}
	return r.sum, errors.Join(failed, store.Close())
}

// run is one import in progress.
type run struct {
	Config
	bucket   *blob.Bucket
	progress *progress
	names    map[string]string // file names by key
	sum      Summary
	reasons  []string
}

// all registers the photos, one job at a time. It copies the photos of the next job
// while a job runs.
func (r *run) all(ctx context.Context, photos []photo) error {
	r.sum.Files = len(photos)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type batch struct {
		photos []photo
		id     string
	}
	begun := make(chan batch, 1)
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error {
		defer close(begun)
		for part := range slices.Chunk(photos, jobItems) {
			id, err := r.begin(ctx, part)
			if err != nil {
				return errors.Join(err, r.clean(ctx, part))
			}
			select {
			case begun <- batch{part, id}:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	work.Go(func() error {
		for b := range begun {
			err := r.watch(ctx, b.id)
			if ctx.Err() == nil {
				err = errors.Join(err, r.clean(ctx, b.photos))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return work.Wait()
}

// begin copies photos to the object store and starts a job for them.
func (r *run) begin(ctx context.Context, photos []photo) (string, error) {
	copies, copying := errgroup.WithContext(ctx)
	copies.SetLimit(uploads)
	for _, p := range photos {
		copies.Go(func() error { return r.copy(copying, p) })
	}
	if err := copies.Wait(); err != nil {
		return "", err
	}
	items := make([]client.BulkItem, len(photos))
	for i, p := range photos {
		items[i] = client.BulkItem{Filename: p.key, Tags: r.Tags}
	}
	id, err := r.Client.BulkRegister(ctx, items)
	if err != nil {
		return "", fmt.Errorf("begin a job: %w", err)
	}
	return id, nil
}

func (r *run) copy(ctx context.Context, p photo) error {
	f, err := os.Open(p.file)
	if err != nil {
		return err // the error names the file
	}
	defer f.Close()
	if err := r.bucket.Upload(ctx, p.key, f, &blob.WriterOptions{ContentType: "application/octet-stream"}); err != nil {
		return fmt.Errorf("copy %s to the object store: %w", p.file, err)
	}
	r.progress.copy()
	return nil
}

// watch follows a job to its end. It does not read finished pages again.
func (r *run) watch(ctx context.Context, id string) error {
	for page := ""; ; {
		p, err := r.Client.BulkProgress(ctx, id, page)
		if err != nil {
			return fmt.Errorf("ask for a job's progress: %w", err)
		}
		open := slices.ContainsFunc(p.Records, func(rec client.BulkRecord) bool { return rec.Status != "Processed" })
		if open {
			r.progress.show(r.sum, p.Records)
			select {
			case <-time.After(progressPause):
				continue
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		for _, rec := range p.Records {
			r.count(rec)
		}
		r.progress.show(r.sum, nil)
		if page = p.LastEvaluatedKey; page == "" {
			return nil
		}
	}
}

// count adds the outcome of one photo, and why it failed.
func (r *run) count(rec client.BulkRecord) {
	r.sum.count(rec)
	if rec.RegisterStatus != "Success" && len(r.reasons) < failuresMax {
		r.reasons = append(r.reasons, fmt.Sprintf("%s: %s", r.names[rec.Filename], rec.Reason))
	}
}

// clean removes copies, also when the import is interrupted.
func (r *run) clean(ctx context.Context, photos []photo) error {
	if r.Keep {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
	defer cancel()
	var left atomic.Int64
	var removals errgroup.Group
	removals.SetLimit(uploads)
	for _, p := range photos {
		removals.Go(func() error {
			if r.bucket.Delete(ctx, p.key) != nil {
				if there, err := r.bucket.Exists(ctx, p.key); there || err != nil {
					left.Add(1)
				}
			}
			return nil
		})
	}
	_ = removals.Wait() // the count includes failures
	if n := left.Load(); n > 0 {
		return fmt.Errorf("%d copies of photos are left in the object store, in %s", n, path.Dir(photos[0].key))
	}
	return nil
}

// find returns the photos in folders. Their keys start with a folder of this
// import, so that an import never touches another's files.
func find(folders []string) ([]photo, error) {
	var random [8]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, fmt.Errorf("name the import: %w", err)
	}
	place := "import-" + hex.EncodeToString(random[:])
	var list []photo
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() || !slices.Contains(suffixes, strings.ToLower(filepath.Ext(name))) {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			if info.Size() > fileBytesMax {
				return fmt.Errorf("%s has more than %d MiB", name, fileBytesMax>>20)
			}
			if len(list) == filesMax {
				return fmt.Errorf("there are more than %d photos", filesMax)
			}
			// The key has a number instead of the file's name: the service may refuse the
			// name, and the name may identify a person.
			key := fmt.Sprintf("%s/%07d%s", place, len(list)+1, strings.ToLower(filepath.Ext(name)))
			list = append(list, photo{file: name, key: key})
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("look for photos: %w", err)
		}
	}
	return list, nil
}

// count adds the outcome of one photo.
func (s *Summary) count(rec client.BulkRecord) {
	if rec.RegisterStatus == "Success" {
		s.Registered++
	} else {
		s.Failed++
	}
}

// Print prints the result of an import.
func (s Summary) Print(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%d photos: %d registered, %d failed\n", s.Files, s.Registered, s.Failed)
	return err
}
