package jobs

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"facet/internal/id"
	"facet/router"
)

const (
	// triesMax is how often a file is tried that the object store or the service has
	// trouble with.
	triesMax = 3
	// retryPause is the pause after the first trouble; it doubles.
	retryPause = 200 * time.Millisecond
	// busyMax is how often a file is begun again while the service is busy or a part
	// of it has no leader; then it is left to a later piece.
	busyMax = 20
	// yieldPause is how often it is looked whether live requests still wait.
	yieldPause = 10 * time.Millisecond
	// yieldMax is how long no file is begun, on all slots together, while live requests
	// wait: a flood that lasts must not hold jobs up for ever.
	yieldMax = 500 * time.Millisecond
	// reasonMax bounds a reason in bytes.
	reasonMax = 512
)

// Reasons of files that could not be read, for programs.
const (
	reasonNoFile = "FileNotFound"
	reasonStore  = "ObjectStore"
	reasonFault  = "ServerError"
)

// names are the words of the interface for what is wrong with a file.
var names = map[router.Kind]string{
	router.InvalidRequest: "InvalidRequest",
	router.Duplicate:      "Duplicate",
	router.NoFace:         "NoFace",
	router.PoorQuality:    "PoorQuality",
	router.MultipleFaces:  "MultipleFaces",
	router.Forbidden:      "Forbidden",
}

// task registers one file; ok is false if it is to be done later, or by another.
func (w *Workers) task(ctx context.Context, tenant id.Tenant, t router.Task) (out router.TaskResult, ok bool) {
	out = router.TaskResult{Task: t, Attempts: 1}
	wait := retryPause
	for busy := 0; ; {
		if w.rest(ctx) != nil {
			return out, false
		}
		registered, err := w.try(ctx, tenant, t)
		if ctx.Err() != nil {
			return out, false
		}
		if err == nil {
			out.Registered = &registered
			return out, true
		}
		reason, final := explain(err)
		switch kind := router.KindOf(err); {
		case kind == router.Busy || kind == router.Unavailable || kind == router.Insufficient:
			if busy++; busy == busyMax {
				return out, false
			}
		case final || out.Attempts == triesMax:
			out.Reason = reason
			return out, true
		default:
			w.cfg.Log.Warn("a file of a job is tried again", "err", err)
			out.Attempts++
		}
		if pause(ctx, wait) != nil {
			return out, false
		}
		wait = min(2*wait, time.Second)
	}
}

// try reads a file and registers it.
func (w *Workers) try(ctx context.Context, tenant id.Tenant, t router.Task) (router.Registered, error) {
	image, err := w.read(ctx, tenant, t)
	if err != nil {
		return router.Registered{}, &storeError{err}
	}
	// While the file was read requests may have come.
	if err := w.yield(ctx); err != nil {
		return router.Registered{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, registerTimeout)
	defer cancel()
	return w.cfg.Source.RegisterTask(ctx, t, image)
}

func (w *Workers) read(ctx context.Context, tenant id.Tenant, t router.Task) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return w.cfg.Files.Read(ctx, tenant, t.Filename, FileBytesMax)
}

// storeError is the object store's.
type storeError struct{ err error }

// Error says what was wrong.
func (e *storeError) Error() string { return e.err.Error() }

// Unwrap gives the cause.
func (e *storeError) Unwrap() error { return e.err }

// explain gives the reason that a record shows; final tells that another try would
// end alike. What the store or the service say of themselves is not shown.
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

// rest waits, before a file is read, while live requests wait for a processor, but not
// for longer than yieldMax.
func (w *Workers) rest(ctx context.Context) error {
	for begun := time.Now(); w.crowded() && time.Since(begun) < yieldMax; {
		if err := pause(ctx, yieldPause); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// yield waits, before a file is worked on, while live requests wait; one file goes on
// all the same when none did for yieldMax.
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

// due tells one caller that no file was begun for yieldMax.
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
