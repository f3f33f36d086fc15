package importing

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"gocloud.dev/blob"
	_ "gocloud.dev/blob/fileblob" // file://, the folder of facet dev
	"golang.org/x/sync/errgroup"

	"facet.internal/client"
	"facet/cmd/facet/importing/state"
	"facet/internal/id"
	"facet/node/bucket"
	_ "facet/node/bucket/clouds" // s3://, and without the tag slim gs:// and azblob://
)

const (
	// jobItems is how many photos go into one job. The work on a short list starts
	// soon, and its body stays small.
	jobItems = 10_000
	// transfers is how many copies are made or removed at once.
	transfers = 8
	// jobPause is how often the state of a job is read.
	jobPause = 500 * time.Millisecond
	// placePrefix begins the names of the copies of one job.
	placePrefix = "import-"
)

// jobs registers photos by jobs. It is the first part of an import; the second registers
// directly what the jobs leave over: failed rows, rows with an unknown tag, which would
// refuse the whole job, and all rows of a person but the first.
type jobs struct {
	*run
	bucket *blob.Bucket
	tags   []string // of the gallery
	copied atomic.Int64
	done   atomic.Int64
}

// batch is the photos of one job. Its key is the hash of the run and the rows, so the same rows of
// a run are the same job, also after a crash.
type batch struct {
	key   state.Key
	tasks []task
	id    string
}

// place returns the folder of the copies.
func (b *batch) place() string { return placePrefix + hex.EncodeToString(b.key[:]) }

// file returns the name of a row's copy. A name of its own would tell who it is, and the
// service may refuse it.
func (b *batch) file(t task) string {
	return fmt.Sprintf("%s/%x-%016x-%016x-%016x", b.place(), t.key[:], uint64(t.person), t.details, t.file)
}

// readFile returns the row's keys in the name of a copy.
func (b *batch) readFile(name string) (r state.Record, err error) {
	text, ok := strings.CutPrefix(name, b.place()+"/")
	var key []byte
	var person uint64
	t := task{}
	if _, err := fmt.Sscanf(text, "%32x-%16x-%16x-%16x", &key, &person, &t.details, &t.file); !ok || err != nil || len(key) != len(t.key) {
		return r, fmt.Errorf("the job has a photo %q that it was not given", name)
	}
	t.key, t.person = state.Key(key), state.Person(person)
	return t.record(state.Left), nil
}

// show shows the results of jobs, or the copies before there is one.
func (j *jobs) show(p *progress) {
	what, n := "rows done by jobs", j.done.Load()
	if n == 0 {
		what, n = "photos copied to the object store", j.copied.Load()
	}
	p.show(what, Summary{Rows: int(n)}, 0, j.stall())
}

// throughJobs registers all rows that jobs can register.
func (r *run) throughJobs(ctx context.Context) error {
	if err := bucket.Check(r.Bucket); err != nil {
		return err
	}
	store, err := blob.OpenBucket(ctx, r.Bucket)
	if err != nil {
		return fmt.Errorf("open the object store: %w", err)
	}
	j := &jobs{run: r, bucket: store}
	p := newProgress(r.Out, r.Terminal, r.progress.total)
	defer p.close()
	err = r.watched(ctx, j.all, func() { j.show(p) })
	return errors.Join(err, store.Close())
}

// all ends the jobs of an earlier run, and then copies the photos of the next job while
// one runs.
func (j *jobs) all(ctx context.Context) error {
	for _, open := range j.state.Jobs() {
		if err := j.follow(ctx, &batch{key: open.Key, id: open.Subject.String()}); err != nil {
			return err
		}
	}
	err := j.insist(ctx, func(ctx context.Context) (err error) {
		j.tags, err = j.client.Tags(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("list the gallery's tags: %w", err)
	}
	begun := make(chan *batch)
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error {
		defer close(begun)
		return j.batches(func(b *batch) error {
			if err := j.begin(ctx, b); err != nil {
				return err
			}
			select {
			case begun <- b:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	})
	work.Go(func() error {
		for b := range begun {
			if err := j.follow(ctx, b); err != nil {
				return err
			}
		}
		return nil
	})
	return work.Wait()
}

// batches calls each with the rows for one job after the other: those that no earlier job
// and no earlier run had, and of each person the first.
func (j *jobs) batches(each func(*batch) error) error {
	equal, seen := map[uint64]uint32{}, map[state.Person]bool{}
	b, hash := &batch{}, sha256.New()
	hash.Write(j.state.Run[:])
	full := func() error {
		b.key = state.Key(hash.Sum(nil)[:16])
		err := each(b)
		b = &batch{}
		hash.Reset()
		hash.Write(j.state.Run[:])
		return err
	}
	for row, err := range j.Source.Rows() {
		if err != nil {
			return err
		}
		t := task{row: row}
		if row.Err != nil {
			continue
		}
		t.photo = j.photos.get()
		err := t.identify(j.gallery, j.Tags, equal)
		j.drop(&t)
		if err != nil { // the second part reports it
			continue
		}
		if slices.ContainsFunc(t.tags(j.Tags), func(tag string) bool { return !slices.Contains(j.tags, tag) }) {
			continue
		}
		again := t.person != 0 && (seen[t.person] || j.has(t.person))
		seen[t.person] = true
		if _, had, err := j.earlier(t.key); had || again || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		b.tasks = append(b.tasks, t)
		fmt.Fprintf(hash, "%x %x", t.key, t.details)
		if len(b.tasks) == jobItems {
			if err := full(); err != nil {
				return err
			}
		}
	}
	if len(b.tasks) == 0 {
		return nil
	}
	return full()
}

// begin copies photos to the object store and starts a job for them.
func (j *jobs) begin(ctx context.Context, b *batch) error {
	copies, copying := errgroup.WithContext(ctx)
	copies.SetLimit(transfers)
	for _, t := range b.tasks {
		copies.Go(func() error { return j.copy(copying, b, t) })
	}
	if err := copies.Wait(); err != nil {
		return err
	}
	items := make([]client.BulkItem, len(b.tasks))
	for i, t := range b.tasks {
		items[i] = client.BulkItem{
			Filename: b.file(t), Tags: t.tags(j.Tags), ExternalID: t.row.ExternalID,
			UserData: json.RawMessage(t.row.UserData), Expires: t.row.Expires,
		}
	}
	keyed := client.WithIdempotencyKey(j.requests, b.place())
	err := j.insist(keyed, func(ctx context.Context) (err error) {
		b.id, err = j.client.BulkRegister(ctx, items)
		return err
	})
	if err != nil {
		return fmt.Errorf("begin a job: %w", err)
	}
	job, err := id.Parse(b.id)
	if err != nil {
		return fmt.Errorf("read the job's id: %w", err)
	}
	return errors.Join(j.keep(state.Record{Key: b.key, Kind: state.Began, Subject: job}), j.state.Sync())
}

// copy copies a photo.
func (j *jobs) copy(ctx context.Context, b *batch, t task) error {
	w, err := j.bucket.NewWriter(ctx, b.file(t), &blob.WriterOptions{ContentType: "application/octet-stream"})
	if err != nil {
		return fmt.Errorf("copy %s to the object store: %w", t.row.File, err)
	}
	if err := errors.Join(t.row.CopyTo(w), w.Close()); err != nil {
		return fmt.Errorf("copy %s to the object store: %w", t.row.File, err)
	}
	j.copied.Add(1)
	return nil
}

// follow reads a job to its end, and removes its copies.
func (j *jobs) follow(ctx context.Context, b *batch) error {
	for page := ""; ; {
		var p client.BulkPage
		err := j.insist(ctx, func(ctx context.Context) (err error) {
			p, err = j.client.BulkProgress(ctx, b.id, page)
			return err
		})
		if errors.Is(err, client.ErrNotFound) { // it is older than the service keeps jobs
			break
		}
		if err != nil {
			return fmt.Errorf("ask for a job's progress: %w", err)
		}
		if slices.ContainsFunc(p.Records, func(rec client.BulkRecord) bool { return rec.Status != "Processed" }) {
			select {
			case <-time.After(jobPause):
				continue
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		for _, rec := range p.Records {
			if err := j.take(b, rec); err != nil {
				return err
			}
		}
		if page = p.LastEvaluatedKey; page == "" {
			break
		}
	}
	if err := errors.Join(j.keep(state.Record{Key: b.key, Kind: state.Ended}), j.state.Sync()); err != nil {
		return err
	}
	return j.clean(ctx, b)
}

// take keeps the result of one photo of a job.
func (j *jobs) take(b *batch, rec client.BulkRecord) error {
	r, err := b.readFile(rec.Filename)
	if err != nil {
		return err
	}
	if rec.RegisterStatus == "Success" {
		var err1, err2 error
		r.Kind = state.Registered
		r.Subject, err1 = id.Parse(rec.SubjectID)
		r.Event, err2 = id.Parse(rec.EventID)
		a, _, err3 := rec.Attributes()
		r.Quality = float64(a.FaceQualityScore)
		if err := errors.Join(err1, err2, err3); err != nil {
			return fmt.Errorf("read a job's record: %w", err)
		}
	}
	j.done.Add(1)
	return j.keep(r)
}

// clean removes the copies of a job.
func (j *jobs) clean(ctx context.Context, b *batch) error {
	if j.Keep {
		return nil
	}
	var removals errgroup.Group
	removals.SetLimit(transfers)
	list := j.bucket.List(&blob.ListOptions{Prefix: b.place() + "/"})
	for {
		o, err := list.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return errors.Join(fmt.Errorf("look for copies of photos: %w", err), removals.Wait())
		}
		removals.Go(func() error { return j.bucket.Delete(ctx, o.Key) })
	}
	if err := removals.Wait(); err != nil {
		return fmt.Errorf("copies of photos are left in the object store, in %s: %w", b.place(), err)
	}
	return nil
}
