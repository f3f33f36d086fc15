package importing

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"facet.internal/client"
	"facet/cmd/facet/importing/list"
	"facet/cmd/facet/importing/state"
	"facet/internal/must"
)

// load sends requests through a gate for a time. The service takes so many at once and
// each takes 100 ms; with others waiting it answers busy.
func load(t *testing.T, g *gate, takes, waits int, d time.Duration) (done int) {
	t.Helper()
	slots, queue := make(chan struct{}, takes), make(chan struct{}, takes+waits)
	for end := time.Now().Add(d); time.Now().Before(end); {
		if g.enter(t.Context()) != nil {
			return done
		}
		go func() {
			defer g.leave()
			select {
			case queue <- struct{}{}:
			default:
				g.busy()
				time.Sleep(100 * time.Millisecond)
				return
			}
			slots <- struct{}{}
			time.Sleep(100 * time.Millisecond)
			<-slots
			<-queue
			g.answered()
			done++
		}()
		synctest.Wait()
	}
	time.Sleep(time.Minute) // the rest
	return done
}

func TestGateFindsHowManyRequestsAreFast(t *testing.T) {
	t.Parallel()
	f := func(takes, waits, atOnce, least, most int) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			g := newGate(3, atOnce)
			done := load(t, g, takes, waits, 2*time.Minute)
			if g.limit < least || g.limit > most {
				t.Errorf("a service that takes %d: limit %d, want %d to %d", takes, g.limit, least, most)
			}
			if want := 1200 * min(takes, most) * 7 / 10; done < want {
				t.Errorf("a service that takes %d: %d done in 2 minutes, want %d", takes, done, want)
			}
		})
	}
	f(40, 1000, 0, 35, 80) // more than it starts with
	f(12, 1000, 0, 9, 24)  // more make nothing faster
	f(4, 2, 0, 2, 8)       // it says busy
	f(40, 1000, 7, 7, 7)   // told
}

func TestReportKeepsTheOrderOfRows(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "report.csv")
	r, err := createReport(name)
	must.Do(t, err)
	for _, place := range []int{2, 0, 1, 4} { // row 3 is never finished
		r.slots <- struct{}{}
		r.add(place, line{row: list.Row{Number: place + 2, File: "a,\"b\".jpg"}, outcome: Failed, reason: "no; face"})
	}
	if s := r.counts(); s.Rows != 4 || s.Failed != 4 {
		t.Errorf("counts %+v", s)
	}
	must.Do(t, r.close())
	text, err := os.ReadFile(name)
	must.Do(t, err)
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil || len(rows) != 5 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for i, want := range []string{"2", "3", "4", "6"} {
		if got := rows[i+1]; got[0] != want || got[6] != "no; face" || got[7] != "a,\"b\".jpg" {
			t.Errorf("line %d is %q, want row %s", i+1, got, want)
		}
	}
}

// The first half was done by an earlier run; then 25 rows a second.
func TestProgressTellsRateAndTimeLeft(t *testing.T) {
	t.Parallel()
	var log, terminal bytes.Buffer
	synctest.Test(t, func(*testing.T) {
		for _, p := range []*progress{newProgress(&log, false, 10_000), newProgress(&terminal, true, 10_000)} {
			for s := 0; s <= 100; s++ {
				p.show("rows", Summary{Rows: 5000 + 25*s, Failed: s / 10, AlreadyIn: 4000}, 5000, stall{})
				time.Sleep(time.Second)
			}
			p.close()
		}
	})
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if n := len(lines); n < 15 || n > 40 || strings.ContainsAny(log.String(), "\r\x1b") {
		t.Errorf("%d lines in 100 s:\n%s", n, &log)
	}
	for _, last := range []string{lines[len(lines)-1], terminal.String()} {
		if !strings.Contains(last, " of 10000 rows (4000 were in already), ") || !strings.Contains(last, ", 25.0 a second, 1m") {
			t.Errorf("the last line is %q", last)
		}
	}
	if n := strings.Count(terminal.String(), "\r"); n != 102 || strings.Contains(terminal.String(), "\n") {
		t.Errorf("%d lines on the terminal", n)
	}
}

// For 90 seconds a node refuses and another one does not answer. Then photos are taken.
func TestProgressSaysWhyNothingIsDone(t *testing.T) {
	t.Parallel()
	var log, terminal bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		s := &sender{}
		s.begin(Config{Words: func(err error) error {
			if e, answered := errors.AsType[*client.Error](err); answered {
				return fmt.Errorf("no room (request %s)", e.RequestID)
			}
			return err
		}})
		begun, try := time.Now(), 0
		send := func(context.Context) error {
			switch try++; {
			case time.Since(begun) > 90*time.Second:
				return nil
			case try%2 == 0:
				return &net.OpError{Op: "dial", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 7420}, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
			}
			return &client.Error{Status: 500, RequestID: fmt.Sprint(try), RetryAfter: 2 * time.Second}
		}
		var work sync.WaitGroup
		work.Go(func() {
			for s.insist(t.Context(), send) != nil { // until a photo is taken
			}
		})
		inLog, onTerminal := newProgress(&log, false, 2000), newProgress(&terminal, true, 2000)
		for range 120 {
			time.Sleep(tick)
			for _, p := range []*progress{inLog, onTerminal} {
				p.show("rows", Summary{}, 0, s.stall())
			}
		}
		work.Wait()
	})
	for _, why := range []string{"no room", "10.0.0.1:7420 does not answer: connection refused"} {
		for _, out := range []*bytes.Buffer{&log, &terminal} {
			if !regexp.MustCompile(`0 of 2000 rows, 0 failed, waiting \d+s: ` + why + `[\n\x1b]`).MatchString(out.String()) {
				t.Errorf("%q is not told:\n%q", why, out)
			}
		}
		if n := strings.Count(log.String(), why); n > 2 {
			t.Errorf("%q is %d times in the log of 90 s:\n%s", why, n, &log)
		}
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if last := lines[len(lines)-1]; strings.Contains(last, "waiting") {
		t.Errorf("photos are taken, and the log says %q", last)
	}
}

// A busy service is asked again no earlier than it says, and a row does not fail because of it.
func TestBusyServiceIsAskedAgainWhenItSays(t *testing.T) {
	t.Parallel()
	const after = 3 * time.Second
	for _, status := range []int{429, 500} {
		synctest.Test(t, func(t *testing.T) {
			s := &sender{}
			s.begin(Config{AtOnce: 1, Words: func(err error) error { return err }})
			var last time.Time
			try, refused := 0, rowTries-1
			if status == 429 {
				refused = 3 * rowTries / 2
			}
			err := s.insist(t.Context(), func(context.Context) error {
				if waited := time.Since(last); try > 0 && waited < after {
					t.Errorf("%d: try %d comes after %v, Retry-After was %v", status, try, waited, after)
				}
				last = time.Now()
				if try++; try <= refused {
					return &client.Error{Status: status, RetryAfter: after}
				}
				return nil
			})
			if err != nil || try != refused+1 {
				t.Errorf("%d: the row ends after %d tries: %v", status, try, err)
			}
		})
	}
}

func TestSummaryTellsRowsThatWereIn(t *testing.T) {
	t.Parallel()
	f := func(want string, lines ...line) {
		t.Helper()
		s := Summary{Report: "r"}
		for _, l := range lines {
			s.count(l)
		}
		var b strings.Builder
		if err := s.Print(&b); err != nil || !strings.HasPrefix(b.String(), want) {
			t.Errorf("%v, %q, want %q", err, b.String(), want)
		}
	}
	was, failed := line{outcome: Registered, earlier: true}, line{outcome: Failed}
	f("3 rows: 2 registered, 0 added to persons, 0 replaced, 0 skipped, 1 failed\n", line{outcome: Registered}, line{outcome: Registered}, failed)
	f("3 rows: 2 were in already, 0 registered now, 0 added to persons, 0 replaced, 0 skipped, 1 failed\n", was, was, failed)
	f("4 rows: 3 were in already, 1 registered now, 0 added to persons, 0 replaced, 0 skipped, 0 failed\n",
		was, line{outcome: Added, earlier: true}, line{outcome: Replaced, earlier: true}, line{outcome: Registered})
}

func TestProgressOfHoursWritesALineAMinute(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	synctest.Test(t, func(*testing.T) {
		p := newProgress(&out, false, 1e6)
		for n := range 10 * 3600 {
			time.Sleep(time.Second)
			p.show("rows", Summary{Rows: n}, 0, stall{})
		}
	})
	if lines := strings.Count(out.String(), "\n"); lines < 600 || lines > 640 {
		t.Errorf("%d lines in ten hours, want one a minute after the first ten minutes", lines)
	}
}

func TestEqualRowsHaveKeysOfTheirOwn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := "external_id,file\n,a.jpg\n,a.jpg\nE,a.jpg\n,b.jpg\n,c.jpg\n"
	for name, content := range map[string]string{"list.csv": text, "a.jpg": "a", "b.jpg": "b", "c.jpg": "a"} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	keys := func(gallery uint64) (all []string) {
		s, err := list.Open([]string{filepath.Join(dir, "list.csv")}, list.Options{})
		must.Do(t, err)
		defer s.Close()
		equal := map[uint64]uint32{}
		for row, err := range s.Rows() {
			t1 := task{row: row, photo: new(bytes.Buffer)}
			must.Do(t, err)
			must.Do(t, t1.identify(gallery, nil, equal))
			all = append(all, fmt.Sprintf("%x", t1.key))
			b := batch{key: state.Key{1}}
			if r, err := b.readFile(b.file(t1)); err != nil || r.Key != t1.key || r.Person != t1.person || r.Details != t1.details || r.File != t1.file {
				t.Errorf("the copy of row %d is of %+v, %v", row.Number, r, err)
			}
		}
		return all
	}
	first, again, other := keys(1), keys(1), keys(2)
	seen := map[string]bool{}
	for i := range first {
		if first[i] != again[i] || first[i] == other[i] || seen[first[i]] {
			t.Errorf("row %d has the keys %s, again %s, and %s in another gallery", i, first[i], again[i], other[i])
		}
		seen[first[i]] = true
	}
}
