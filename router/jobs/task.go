package jobs

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"facet/internal/id"
	"facet/router"
	"facet/router/bulk"
)

const (
	// triesMax is the most tries of a file after failures of the object store or
	// the service.
	triesMax = 3
	// retryPause is the pause after the first failure. It doubles with each.
	retryPause = 200 * time.Millisecond
	// busyMax is the most tries of a file while the service is busy or a group has no
	// leader. After that the file waits for a later piece.
	busyMax = 20
	// yieldPause is how often a worker checks whether live requests still wait.
	yieldPause = 10 * time.Millisecond
	// yieldMax is the longest time without the start of a file while live requests
	// wait, counted over all slots. A lasting flood of requests must not stop jobs
	// for ever.
	yieldMax = 500 * time.Millisecond
	// reasonMax is the most bytes of a reason.
	reasonMax = 512
)

// Reasons of files that could not be read, for programs.
const (
	reasonNoFile = "FileNotFound"
	reasonStore  = "ObjectStore"
	reasonFault  = "ServerError"
)

// names contains the interface's name for each kind of error that a file can cause.
var names = map[router.Kind]string{
	router.InvalidRequest: "InvalidRequest",
	router.Duplicate:      "Duplicate",
	router.NoFace:         "NoFace",
	router.PoorQuality:    "PoorQuality",
	router.MultipleFaces:  "MultipleFaces",
	router.Forbidden:      "Forbidden",
}

// task registers one file. The error says why the file is left to a later piece or to
// another node. If it is OverQuota, the other files of the piece would meet it, too.
func (w *Workers) task(ctx context.Context, tenant id.Tenant, t bulk.Task) (out bulk.TaskResult, err error) {
	out = bulk.TaskResult{Task: t, Attempts: 1}
	wait := retryPause
	for busy := 0; ; {
		if err := w.rest(ctx); err != nil {
			return out, err
		}
		registered, err := w.try(ctx, tenant, t)
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
		if err == nil {
			out.Registered = &registered
			return out, nil
		}
		reason, final := explain(err)
		switch kind := router.KindOf(err); {
		case kind == router.OverQuota:
			return out, err
		case kind == router.Busy || kind == router.Unavailable || kind == router.Insufficient:
			if busy++; busy == busyMax {
				return out, err
			}
		case final || out.Attempts == triesMax:
			out.Reason = reason
			return out, nil
		default:
			w.cfg.Log.WarnContext(ctx, "a file of a job failed, trying again", "err", err)
			out.Attempts++
		}
		if err := pause(ctx, wait); err != nil {
			return out, err
		}
		wait = min(2*wait, time.Second)
	}
}

// try reads a file and registers it.
func (w *Workers) try(ctx context.Context, tenant id.Tenant, t bulk.Task) (router.Registered, error) {
	image, err := w.read(ctx, tenant, t)
	if err != nil {
		return router.Registered{}, &storeError{err}
	}
	defer clear(image)
	// Requests may have come while the file was read.
	if err := w.yield(ctx); err != nil {
		return router.Registered{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, registerTimeout)
	defer cancel()
	return w.cfg.Source.RegisterTask(ctx, t, image)
}

func (w *Workers) read(ctx context.Context, tenant id.Tenant, t bulk.Task) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return w.cfg.Files.Read(ctx, tenant, t.Filename, FileBytesMax)
}

// storeError is an error of the object store.
type storeError struct{ err error }

// Error returns the text of the cause.
func (e *storeError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *storeError) Unwrap() error { return e.err }

// explain returns the reason of a failure for the file's record. final reports that
// another try would fail in the same way. The reason has no details of an error of
// the store or of the service.
func explain(err error) (reason string, final bool) {
	_, store := errors.AsType[*storeError](err)
	e, known := errors.AsType[*router.Error](err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return reasonNoFile + ": there is no such file in the object store", true
	case errors.Is(err, ErrTooLarge):
		return "InvalidRequest: the file is too large", true
	case store:
		return reasonStore + ": the file could not be read", false
	case known && names[e.Kind] != "":
		name := e.Reason
		if name == "" {
			name = names[e.Kind]
		}
		text := name + ": " + e.Message
		return text[:min(len(text), reasonMax)], true
	default:
		return reasonFault + ": the file could not be processed", false
	}
}

// rest waits before a file is read while live requests wait for a processor, but at
// most for yieldMax.
func (w *Workers) rest(ctx context.Context) error {
	for begun := time.Now(); w.crowded() && time.Since(begun) < yieldMax; {
		if err := pause(ctx, yieldPause); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// yield waits before a file is processed while live requests wait. When no file was
// started for yieldMax, one file continues anyway.
func (w *Workers) yield(ctx context.Context) error {
	for w.crowded() && !w.due() {
		if err := pause(ctx, yieldPause); err != nil {
			return err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun = time.Now()
	return ctx.Err()
}

func (w *Workers) crowded() bool { return w.cfg.Waiting != nil && w.cfg.Waiting() > 0 }

// due reports whether no file was started for yieldMax. It returns true to one
// caller only, and then starts the time again.
func (w *Workers) due() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if now.Sub(w.begun) < yieldMax {
		return false
	}
	w.begun = now
	return true
}
