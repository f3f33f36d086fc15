package jobs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"facet/internal/id"
	"facet/router"
	"facet/router/bulk"
)

// source is a Source of one piece. Each test sets its answers.
type source struct {
	mu       sync.Mutex
	piece    *bulk.Piece
	results  []bulk.TaskResult
	reports  int
	held     bool
	register func(filename string, try int) error
	tries    map[string]int
	// postponed has the time of each call of Postpone.
	postponed []time.Time
	active    atomic.Int64
	most      atomic.Int64
}

func newSource(register func(filename string, try int) error, names ...string) *source {
	s := &source{piece: &bulk.Piece{}, held: true, register: register, tries: map[string]int{}}
	for _, n := range names {
		s.piece.Tasks = append(s.piece.Tasks, bulk.Task{Filename: n})
	}
	return s
}

func (s *source) Shards() []id.Shard               { return []id.Shard{1, 2} }
func (s *source) Idle(shard id.Shard) bool         { return shard == 1 }
func (s *source) ExpireJobs(context.Context) error { return nil }

func (s *source) Postpone(context.Context, *bulk.Piece) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.postponed = append(s.postponed, time.Now())
	return nil
}

func (s *source) TakePiece(context.Context, id.Shard, int) (*bulk.Piece, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.piece
	s.piece = nil
	return p, nil
}

func (s *source) RegisterTask(ctx context.Context, t bulk.Task, image []byte) (router.Registered, error) {
	now := s.active.Add(1)
	defer s.active.Add(-1)
	s.mu.Lock()
	s.most.Store(max(s.most.Load(), now))
	s.tries[t.Filename]++
	try := s.tries[t.Filename]
	s.mu.Unlock()
	if !bytes.Equal(image, []byte("image of "+t.Filename)) {
		return router.Registered{}, fmt.Errorf("image %q", image)
	}
	if err := s.register(t.Filename, try); err != nil {
		return router.Registered{}, err
	}
	select {
	case <-time.After(4 * time.Second):
	case <-ctx.Done():
		return router.Registered{}, ctx.Err()
	}
	return router.Registered{Subject: id.Subject{UUID: id.UUID{byte(try)}}}, nil
}

func (s *source) Report(_ context.Context, _ *bulk.Piece, results []bulk.TaskResult) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reports++; s.reports == 2 {
		return false, errors.New("no leader")
	}
	s.results = append(s.results, results...)
	return s.held, nil
}

// told returns the number of reports.
func (s *source) told() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reports
}

// files is the object store. A name with "away" fails, one with "none" is missing.
type files struct{}

func (files) Read(_ context.Context, _ id.Tenant, name string, limit int) ([]byte, error) {
	switch {
	case strings.HasPrefix(name, "none"):
		return nil, fmt.Errorf("read: %w", fs.ErrNotExist)
	case strings.HasPrefix(name, "large"):
		return nil, ErrTooLarge
	case strings.HasPrefix(name, "away"):
		return nil, errors.New("connection refused to secret:1")
	}
	return []byte("image of " + name), nil
}

// work runs Workers on s in virtual time and returns the results by name.
func work(t *testing.T, s *source, d time.Duration, waiting func() int) map[string]bulk.TaskResult {
	t.Helper()
	w := Open(Config{Source: s, Files: files{}, Slots: 2, Waiting: waiting, Log: slog.New(slog.DiscardHandler)})
	time.Sleep(d)
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	by := map[string]bulk.TaskResult{}
	for _, r := range s.results {
		if _, twice := by[r.Task.Filename]; twice {
			t.Errorf("%s is reported twice", r.Task.Filename)
		}
		by[r.Task.Filename] = r
	}
	return by
}

func TestEachFileGetsItsOutcome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSource(func(name string, try int) error {
			switch {
			case name == "face":
				return router.Errorf(router.NoFace, "", "there is none")
			case name == "full":
				return router.Errorf(router.InvalidRequest, router.ReasonGalleryFull, "it is full")
			case name == "busy" && try < 10:
				return &router.Error{Kind: router.Unavailable, Message: "no leader"}
			case name == "faulty" && try == 1:
				return errors.New("fault in /secret")
			case name == "broken":
				return errors.New("fault in /secret")
			}
			return nil
		}, "good", "face", "full", "busy", "faulty", "broken", "none", "large", "away")
		got := work(t, s, 2*time.Minute, nil)
		for name, want := range map[string]string{
			"good": "1 ok", "face": "1 NoFace: there is none", "full": "1 GalleryFull: it is full", "busy": "1 ok", "faulty": "2 ok",
			"broken": "3 ServerError: the file could not be processed", "none": "1 FileNotFound: there is no such file in the object store",
			"large": "1 InvalidRequest: the file is too large", "away": "3 ObjectStore: the file could not be read",
		} {
			r := got[name]
			text := fmt.Sprint(r.Attempts, " ", r.Reason)
			if r.Registered != nil {
				text += "ok"
			}
			if text != want {
				t.Errorf("%s: %q, want %q", name, text, want)
			}
		}
		if len(got) != 9 || s.most.Load() != 2 {
			t.Errorf("%d results; %d at once, want 2", len(got), s.most.Load())
		}
	})
}

func TestResultsAreReportedBeforeLeaseEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSource(func(string, int) error { return nil }, "a", "b", "c", "d", "e", "f")
		w := Open(Config{Source: s, Files: files{}, Slots: 1, Log: slog.New(slog.DiscardHandler)})
		defer w.Close()
		for range 3 {
			before := s.told()
			time.Sleep(bulk.LeaseTime / 2)
			if s.told() == before {
				t.Fatal("no word of the piece in half the time that it is lent")
			}
		}
	})
}

func TestLostPieceIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSource(func(string, int) error { return nil }, "a", "b", "c", "d", "e", "f")
		s.held = false
		work(t, s, time.Minute, nil)
		if n := len(s.tries); n > 2 {
			t.Errorf("%d files were begun of a piece that is another's", n)
		}
	})
}

// A node does one piece at a time. One tenant's quota must not hold up another's jobs.
func TestQuotaEndsItsPieceAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		names := []string{"none"} // which has an outcome
		for i := range bulk.PieceMax - 1 {
			names = append(names, fmt.Sprint("file ", i))
		}
		s := newSource(func(string, int) error {
			time.Sleep(100 * time.Millisecond) // the other slot has its outcome meanwhile
			return router.Errorf(router.OverQuota, "writes", "it is used up")
		}, names...)
		begun := time.Now()
		got := work(t, s, 5*time.Minute, nil)
		if tries := len(s.tries); tries == 0 || tries > 2 || s.tries["file 0"] > 1 {
			t.Errorf("tries beyond a quota: %v", s.tries)
		}
		if len(s.postponed) != 1 || s.postponed[0].Sub(begun) > time.Second {
			t.Errorf("the piece was given back at %v; it began at %v", s.postponed, begun)
		}
		if len(got) != 1 || got["none"].Reason == "" {
			t.Errorf("outcomes: %v", got)
		}
	})
}

// No file starts while live requests wait for less than yieldMax.
func TestFilesWaitForLiveRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		waiting := func() int {
			if time.Since(begun) < yieldMax-yieldPause {
				return 1
			}
			return 0
		}
		s := newSource(func(string, int) error {
			if time.Since(begun) < yieldMax-yieldPause {
				t.Error("a file is begun while live requests wait")
			}
			return nil
		}, "a")
		if got := work(t, s, time.Minute, waiting); got["a"].Registered == nil {
			t.Errorf("after the wait: %v", got)
		}
	})
}

// While live requests wait all the time, one file starts every half second.
func TestLastingFloodDoesNotStopJobs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var names []string
		for i := range 20 {
			names = append(names, fmt.Sprint("file ", i))
		}
		s := newSource(func(string, int) error { return nil }, names...)
		var began time.Time
		var at []time.Duration
		s.register = func(string, int) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			at = append(at, time.Since(began))
			return nil
		}
		began = time.Now()
		got := work(t, s, 2*time.Minute, func() int { return 100 })
		if len(got) != len(names) {
			t.Errorf("%d of %d files have their outcome beside a flood of two minutes", len(got), len(names))
		}
		for i := 1; i < len(at); i++ {
			if gap := at[i] - at[i-1]; gap < yieldMax {
				t.Errorf("file %d was begun %s after the one before, want at least %s", i, gap, yieldMax)
			}
		}
	})
}
