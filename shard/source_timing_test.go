package shard

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"facet/engine"
	"facet/internal/id"
	"facet/internal/must"
	"facet/shard/kernel"
	"facet/shard/record"
	"facet/shard/segment"
)

const coldDim = 192

// newColdBench returns a shard with n events whose faces are in segments, in the folder dir.
func newColdBench(b *testing.B, dir string, n int) *Shard {
	b.Helper()
	store, err := segment.Open(dir, segment.Options{Damaged: func(err error) { b.Error(err) }})
	must.Do(b, err)
	s, key := newTestShard(b, uint32(n)), testKey(b, 1)
	s.arena = kernel.NewArena(0)
	s.Keep(store)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range n {
		u := id.UUID{byte(i >> 16), byte(i >> 8), byte(i), 1}
		e := Event{Gallery: testGallery, Generation: 1, Subject: id.Subject{UUID: u}, Event: id.Event{UUID: u}, Time: int64(i)}
		e.Sealed = SealFace(key, FaceRef{testGallery, 1, e.Subject, e.Event, 0}, engine.Face{Template: randomTemplate(r, coldDim)})
		put(b, s, e)
		if i%fullBatch == fullBatch-1 || i == n-1 {
			frozenInto(b, s, segment.Share)
		}
	}
	must.Do(b, s.Warm(b.Context(), testGallery, 1, key))
	b.Cleanup(func() {
		s.Close()
		if err := s.arena.Close(); err != nil {
			b.Error(err)
		}
	})
	return s
}

// BenchmarkFetch reads and decrypts random rows, some at a time.
func BenchmarkFetch(b *testing.B) {
	s := newColdBench(b, b.TempDir(), 50_000)
	sl, done, err := s.enter(testGallery, 1)
	must.Do(b, err)
	defer done()
	rows := rowsOf(sl)
	for _, some := range []int{1, 32, 512} {
		b.Run(fmt.Sprint(some), func(b *testing.B) {
			at := 0
			b.ReportAllocs()
			for b.Loop() {
				if at+some > len(rows) {
					at = 0
				}
				must.Do(b, sl.source.Fetch(b.Context(), rows[at:at+some], func(int, []float32) {}))
				at += some
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*some), "ns/row")
		})
	}
}

// BenchmarkFsyncBesideFetches appends to a file and waits for the disk, as Raft's log does: alone, beside
// searches that read rows from the page cache, and beside searches that read them from the disk.
func BenchmarkFsyncBesideFetches(b *testing.B) {
	dir := b.TempDir()
	s := newColdBench(b, dir, 100_000)
	sl, done, err := s.enter(testGallery, 1)
	must.Do(b, err)
	defer done()
	for _, fetches := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("%d fetches", fetches), func(b *testing.B) {
			for b.Loop() {
				alone := timeAppends(b, dir)
				cached, _, _ := fetchBeside(b, sl, fetches, func() {}, dir)
				disk, rows, bytes := fetchBeside(b, sl, fetches, func() { dropCache(b, dir) }, dir)
				b.ReportMetric(float64(alone.Microseconds()), "alone-p99-us")
				b.ReportMetric(float64(cached)/float64(alone), "x-cached")
				b.ReportMetric(float64(disk)/float64(alone), "x-disk")
				b.ReportMetric(rows/appendsTime.Seconds(), "rows/s")
				b.ReportMetric(bytes/rows, "B-of-disk/row")
				b.ReportMetric(0, "ns/op")
			}
		})
	}
}

// fetchBeside returns the p99 of appends beside some fetches, and the rows and the bytes of the disk that
// these read. each is called every two milliseconds.
func fetchBeside(b *testing.B, sl *slice, fetches int, each func(), dir string) (p99 time.Duration, rows, bytes float64) {
	b.Helper()
	known := rowsOf(sl)
	var work sync.WaitGroup
	var stop atomic.Bool
	var read atomic.Int64
	for w := range fetches {
		work.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(w)))
			for !stop.Load() {
				some := known[r.IntN(len(known)-32):][:32]
				if err := sl.source.Fetch(b.Context(), some, func(int, []float32) {}); err != nil {
					b.Error(err)
					return
				}
				read.Add(int64(len(some)))
			}
		})
	}
	work.Go(func() {
		for !stop.Load() {
			each()
			time.Sleep(2 * time.Millisecond)
		}
	})
	before := readBytes(b)
	p99 = timeAppends(b, dir)
	stop.Store(true)
	work.Wait()
	return p99, float64(read.Load()), float64(readBytes(b) - before)
}

// rowsOf returns the rows of a slice in random order.
func rowsOf(sl *slice) (rows []record.Row) {
	for row := range sl.entries.All(0) {
		rows = append(rows, row)
	}
	rand.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	return rows
}

const (
	// appendsTime is how long timeAppends appends.
	appendsTime = 5 * time.Second
	// appendsDir names the folder in which a process of timeAppends appends.
	appendsDir = "FACET_APPENDS_DIR"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(appendsDir); dir != "" {
		p99, err := appends(dir)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Fprintln(os.Stdout, p99.Nanoseconds())
		return
	}
	os.Exit(m.Run())
}

// timeAppends returns the p99 of some seconds of appends by another process: in this one they would wait
// for a processor, too.
func timeAppends(b *testing.B, dir string) time.Duration {
	b.Helper()
	c := exec.CommandContext(b.Context(), os.Args[0])
	c.Env, c.Stderr = append(os.Environ(), appendsDir+"="+dir), os.Stderr
	text, err := c.Output()
	must.Do(b, err)
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	must.Do(b, err)
	return time.Duration(n)
}

// appends appends to a file in a folder and waits for the disk, again and again, and returns the p99. It
// comes before all others on its processor if this user may have that. RawSyscall keeps Go's scheduler
// out of the times.
func appends(dir string) (time.Duration, error) {
	runtime.LockOSThread()
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{Policy: unix.SCHED_FIFO, Priority: 50}, 0) // else the times are longer
	f, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	page, pause := make([]byte, 4096), unix.NsecToTimespec(int64(time.Millisecond/2))
	var times []time.Duration
	for end := time.Now().Add(appendsTime); time.Now().Before(end); {
		_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&pause)), 0, 0)
		begin := time.Now()
		if _, _, errno := unix.RawSyscall(unix.SYS_WRITE, f.Fd(), uintptr(unsafe.Pointer(&page[0])), uintptr(len(page))); errno != 0 {
			return 0, errno
		}
		if _, _, errno := unix.RawSyscall(unix.SYS_FSYNC, f.Fd(), 0, 0); errno != 0 {
			return 0, errno
		}
		times = append(times, time.Since(begin))
	}
	slices.Sort(times)
	return times[len(times)*99/100], nil
}

// dropCache drops the segments of a folder from the page cache.
func dropCache(b *testing.B, dir string) {
	b.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.seg"))
	if err != nil || len(names) == 0 {
		b.Fatalf("%d segments, %v", len(names), err)
	}
	for _, name := range names {
		f, err := os.Open(name)
		must.Do(b, err)
		must.Do(b, unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED))
		f.Close()
	}
}

// readBytes returns how many bytes this process has caused to be read from disks.
func readBytes(b *testing.B) (n int64) {
	b.Helper()
	text, err := os.ReadFile("/proc/self/io")
	must.Do(b, err)
	for line := range strings.Lines(string(text)) {
		if _, err := fmt.Sscanf(line, "read_bytes: %d", &n); err == nil {
			return n
		}
	}
	b.Fatalf("no read_bytes in %s", text)
	return 0
}
