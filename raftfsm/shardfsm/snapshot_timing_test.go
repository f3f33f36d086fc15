package shardfsm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"facet/internal/codec"
	"facet/internal/id"
	"facet/internal/must"
	"facet/raftfsm/operation"
	"facet/shard"
	"facet/shard/job"
	"facet/shard/kernel"
	"facet/shard/seal"
	"facet/shard/segment"
)

// kinds names the records of a snapshot in the report.
var kinds = map[byte]string{
	1: "shard", 2: "slices", 3: "entries", 4: "fences", 5: "claims", 6: "shard", 7: "segments", 16: "clock", 17: "operations",
	18: "clock", 19: "files-of-operations", 32: "jobs", 33: "items", 34: "jobs", 35: "files-of-items",
}

// packed returns the length of raw, compressed as in a snapshot.
func packed(b *testing.B, raw []byte) int {
	b.Helper()
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20), zstd.WithEncoderLevel(zstd.SpeedFastest))
	must.Do(b, err)
	defer z.Close()
	return len(z.EncodeAll(raw, nil))
}

// ledger is a shard with all kinds of records, and counts of them.
type ledger struct {
	b           *testing.B
	m           *Machine
	key         *seal.Key
	dir         string
	random      *rand.ChaCha8
	events, ops int
	items       int
}

func (l *ledger) bytes(n int) []byte {
	raw := make([]byte, n)
	if _, err := l.random.Read(raw); err != nil {
		l.b.Fatal(err)
	}
	return raw
}

// operate adds n remembered operations, a third of them plain.
func (l *ledger) operate(n int) {
	l.b.Helper()
	for range n {
		l.ops++
		keyed := l.ops%3 > 0
		l.m.ops.Advance(testTime + int64(l.ops)/3*18/7) // so that 233,000 plain ones are known at a time
		o := operation.Outcome{Kind: 2, Number: uint32(l.ops % 3)}
		copy(o.Name.Op[:], l.bytes(len(o.Name.Op)))
		copy(o.Name.Request[:], l.bytes(16))
		copy(o.IDs[0][:], l.bytes(16))
		copy(o.IDs[1][:], l.bytes(16))
		binary.BigEndian.PutUint16(o.Scope[:], uint16(l.ops%20))
		o.Name.Keyed = keyed
		if !l.m.ops.Full(o.Name) {
			l.m.ops.Remember(o)
		}
	}
}

// register registers n items in jobs of 10,000, with sealed texts of the usual length.
func (l *ledger) register(n int) {
	l.b.Helper()
	const most = 10_000
	for n > 0 {
		total := min(n, most)
		n -= total
		l.items += total
		name := job.Name{Gallery: testGallery, Generation: 1, Batch: id.Batch{UUID: id.UUID(l.bytes(16))}}
		_, err := l.m.jobs.Begin(job.Begin{Name: name, Request: [16]byte(l.bytes(16)), Total: uint32(total), Time: testTime})
		var items [][]byte
		var results []job.Result
		for i := range total {
			items = append(items, l.bytes(60))
			results = append(results, job.Result{
				Index: uint32(i), Attempts: 1, Success: true, Subject: id.Subject{UUID: id.UUID(l.bytes(16))},
				Event: id.Event{UUID: id.UUID(l.bytes(16))}, Sealed: l.bytes(140),
			})
		}
		_, added := l.m.jobs.Add(name, 0, items, testTime)
		_, opened := l.m.jobs.Open(name, testTime)
		_, finished := l.m.jobs.Finish(name, results, testTime)
		must.Do(l.b, errors.Join(err, added, opened, finished))
	}
}

// enrol enrols n events.
func (l *ledger) enrol(n int) {
	l.b.Helper()
	fill(l.b, l.m.Shard(), l.key, l.events, l.events+n)
	l.events += n
}

// erase erases n of the first events, spread evenly, starting at number from.
func (l *ledger) erase(n, of, from int) {
	l.b.Helper()
	for i := range n {
		number := uint64(from + i*(of/n))
		var u id.UUID
		binary.BigEndian.PutUint64(u[:], number*0x9e3779b97f4a7c15)
		binary.BigEndian.PutUint64(u[8:], number)
		must.Do(l.b, l.m.Shard().Erase(shard.Erasure{Gallery: testGallery, Generation: 1, Subject: id.Subject{UUID: u}, Time: testTime}))
	}
}

// snapshot makes a snapshot as a group does, and returns its state. It reports the written
// bytes under name: those of the files, and those of the state by kind of record.
func (l *ledger) snapshot(name string) []byte {
	l.b.Helper()
	before, begin := sizes(l.b, l.dir), time.Now()
	f := l.m.freeze()
	frozen := time.Since(begin)
	if _, err := f.Settle(segment.Share); err != nil {
		l.b.Fatal(err)
	}
	var raw bytes.Buffer
	z, err := zstd.NewWriter(&raw, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20), zstd.WithEncoderLevel(zstd.SpeedFastest))
	must.Do(l.b, err)
	if _, err := f.WriteTo(z); err != nil {
		l.b.Fatal(err)
	}
	must.Do(l.b, z.Close())
	f.Adopt()
	took := time.Since(begin)
	files := written(before, sizes(l.b, l.dir))
	f.Release()
	kind := l.byKind(raw.Bytes())
	var line strings.Builder // one, because of a benchmark only ten are shown
	for _, code := range slices.Sorted(maps.Keys(kind)) {
		fmt.Fprintf(&line, " %s %.3f,", kinds[code], float64(packed(l.b, kind[code]))/1e6)
	}
	l.b.Logf("%s: in MB%s files %.3f, all %.3f, in %.2f s, of which %.1f ms frozen", name, line.String(), float64(files)/1e6,
		(float64(raw.Len())+float64(files))/1e6, took.Seconds(), float64(frozen.Microseconds())/1e3)
	l.b.ReportMetric((float64(raw.Len())+float64(files))/1e6, name+"-MB")
	return raw.Bytes()
}

// restore reads a snapshot as a restart does, without its templates.
func (l *ledger) restore(state []byte) {
	l.b.Helper()
	m := New(newTable(l.b), kernel.NewArena(0))
	m.Keep(l.m.Shard().Store())
	defer m.Shard().Close()
	begin := time.Now()
	z, err := zstd.NewReader(bytes.NewReader(state), zstd.WithDecoderConcurrency(1))
	must.Do(l.b, err)
	defer z.Close()
	must.Do(l.b, m.Restore(z))
	l.b.ReportMetric(time.Since(begin).Seconds(), "restore-s")
	if got, want := m.Operations(), l.m.Operations(); got != want {
		l.b.Fatalf("%d operations, want %d", got, want)
	}
}

// byKind returns the bytes of a compressed state's records by their code.
func (l *ledger) byKind(state []byte) map[byte][]byte {
	l.b.Helper()
	z, err := zstd.NewReader(bytes.NewReader(state), zstd.WithDecoderConcurrency(1))
	must.Do(l.b, err)
	defer z.Close()
	return recordBodies(l.b, z)
}

// recordBodies returns the joined bodies of a snapshot's records by their code.
func recordBodies(t testing.TB, r io.Reader) map[byte][]byte {
	t.Helper()
	in, err := codec.NewReader(r, magic)
	must.Do(t, err)
	kind := make(map[byte][]byte)
	for {
		r, err := in.Next()
		if errors.Is(err, io.EOF) {
			return kind
		}
		must.Do(t, err)
		kind[r.Code] = append(kind[r.Code], r.Body...)
	}
}

// BenchmarkSnapshotWrites logs the bytes that snapshots of a shard write, by kind of record.
// The shard has EVENTS events (default 200,000), as many items of jobs, and nine tenths of
// the most operations. It logs the first snapshot, then later ones after nothing, a hundredth
// and a tenth have changed, and the time to read the last.
func BenchmarkSnapshotWrites(b *testing.B) {
	n := 200_000
	if word := os.Getenv("EVENTS"); word != "" {
		var err error
		if n, err = strconv.Atoi(word); err != nil {
			b.Fatal(err)
		}
	}
	key, err := seal.NewKey(make([]byte, seal.KeyBytes))
	must.Do(b, err)
	for b.Loop() {
		dir := b.TempDir()
		store, err := segment.Open(dir, segment.Options{})
		must.Do(b, err)
		l := &ledger{b: b, m: New(newTable(b), kernel.NewArena(0)), key: key, dir: dir, random: rand.NewChaCha8([32]byte{1})}
		l.m.Keep(store)
		must.Do(b, l.m.Shard().Grant(shard.Grant{Gallery: testGallery, Generation: 1, Total: uint32(2 * n)}))
		full := limits.Plain + limits.Keyed
		l.enrol(n)
		l.operate(full / 10 * 9) // the rest comes later
		l.register(n)
		l.snapshot("first")
		l.snapshot("same")
		var state []byte
		for _, share := range []int{100, 10} {
			l.erase(n/share/2, n/2, share%7)
			l.enrol(n / share / 2)
			l.operate(full / share)
			l.register(n / share)
			state = l.snapshot("one-in-" + strconv.Itoa(share))
		}
		l.restore(state)
		l.m.Shard().Close()
	}
}
