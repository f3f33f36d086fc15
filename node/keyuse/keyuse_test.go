package keyuse

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"
)

// meta notes what it gets, or fails.
type meta struct {
	err   error
	calls int
	noted map[string]time.Time
}

func (m *meta) NoteKeyUses(_ context.Context, uses map[string]time.Time) error {
	m.calls++
	if m.err != nil {
		return m.err
	}
	maps.Copy(m.noted, uses)
	return nil
}

func TestBusyKeyIsReportedSeldom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &meta{noted: map[string]time.Time{}}
		r := New(m)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { r.Run(ctx); close(done) }()
		began := time.Now()
		for time.Since(began) < time.Hour {
			r.Used("busy")
			time.Sleep(time.Second)
		}
		if m.calls < 4 || m.calls > 5 || time.Since(m.noted["busy"]) > again+2*interval {
			t.Errorf("%d reports in an hour, the last use %v ago", m.calls, time.Since(m.noted["busy"]))
		}
		r.Used("seldom")
		time.Sleep(interval + time.Second)
		if m.noted["seldom"].IsZero() {
			t.Error("a first use is not reported")
		}
		cancel()
		<-done
	})
}

func TestFailedReportComesAgain(t *testing.T) {
	t.Parallel()
	m := &meta{err: errors.New("no leader"), noted: map[string]time.Time{}}
	r := New(m)
	r.Used("key")
	if err := r.Report(t.Context()); err == nil {
		t.Fatal("no error")
	}
	m.err = nil
	if err := r.Report(t.Context()); err != nil || m.noted["key"].IsZero() {
		t.Fatalf("%v, noted %v", err, m.noted)
	}
}

func TestManyKeysAreBounded(t *testing.T) {
	t.Parallel()
	m := &meta{noted: map[string]time.Time{}}
	r := New(m)
	for i := range most + 10 {
		r.Used(fmt.Sprint("key ", i))
	}
	if err := r.Report(t.Context()); err != nil || len(m.noted) != most || len(r.reported) != most {
		t.Fatalf("%v, noted %d, remembered %d", err, len(m.noted), len(r.reported))
	}
	r.Used("one more")
	if err := r.Report(t.Context()); err != nil || len(r.reported) != 1 {
		t.Fatalf("%v, remembered %d", err, len(r.reported))
	}
}
