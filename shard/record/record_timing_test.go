package record

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"syscall"
	"testing"
	"time"

	"facet/internal/id"
	"facet/internal/must"
	"facet/shard/kernel"
)

// ids are random, as those of the router. They have no pointers, for a garbage collection to cost
// nothing.
type ids []struct{ subject, event id.UUID }

func randomIDs(n int) ids {
	r := rand.New(rand.NewPCG(1, 1))
	list := make(ids, n)
	for i := range list {
		for _, u := range []*id.UUID{&list[i].subject, &list[i].event} {
			binary.LittleEndian.PutUint64(u[:8], r.Uint64())
			binary.LittleEndian.PutUint64(u[8:], r.Uint64())
		}
	}
	return list
}

func (l ids) subject(i int) id.Subject { return id.Subject{UUID: l[i].subject} }

func (l ids) fields(i int) Fields {
	return Fields{
		Subject: l.subject(i), Event: id.Event{UUID: l[i].event},
		Sequence: uint64(i + 1), First: uint64(i + 1), Time: 1_700_000_000_000 + int64(i), SealedLen: 877,
	}
}

// processor returns the processor's time of this process.
func processor() time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		panic(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// BenchmarkRecords reports what a record takes, with its place in the order and its subject's place
// in the index, how long it takes to add and to find one, and what a garbage collection costs with so
// many, less what it costs without. Beside it are a map and a slice of pointers, as Go programs
// usually have them.
func BenchmarkRecords(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000, 4_000_000} {
		list := randomIDs(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				benchRecords(b, list)
			}
		})
		b.Run(fmt.Sprintf("%d pointers", n), func(b *testing.B) {
			for b.Loop() {
				benchPointers(b, list)
			}
		})
	}
}

func report(b *testing.B, n int, added, found time.Duration) {
	b.ReportMetric(float64(added.Nanoseconds())/float64(n), "ns/add")
	b.ReportMetric(float64(found.Nanoseconds())/float64(n), "ns/find")
	b.ReportMetric(0, "ns/op")
}

// collection returns the processor's time of a garbage collection.
func collection() time.Duration {
	const times = 5
	runtime.GC()
	begin := processor()
	for range times {
		runtime.GC()
	}
	return (processor() - begin) / times
}

func heap() float64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

func benchRecords(b *testing.B, list ids) {
	idle, before := collection(), heap()
	arena := kernel.NewArena(0)
	t := NewTable(arena)
	o := NewOrder(t)
	begin := time.Now()
	for i := range list {
		f := list.fields(i)
		row := t.Add(&f)
		o.Append(row)
		t.SetFirst(row)
	}
	added := time.Since(begin)
	r := rand.New(rand.NewPCG(2, 2))
	begin = time.Now()
	for range list {
		if t.First(list.subject(r.IntN(len(list)))) == 0 {
			b.Fatal("a subject is missing")
		}
	}
	report(b, len(list), added, time.Since(begin))
	full := collection()
	b.ReportMetric(max((full-idle).Seconds()*1e3, 0)*1e6/float64(len(list)), "GC-ms/million")
	b.ReportMetric((float64(arena.Used())+heap()-before)/float64(len(list)), "B/event")
	runtime.KeepAlive(o)
	t.Close()
	must.Do(b, arena.Close())
}

func benchPointers(b *testing.B, list ids) {
	idle, before := collection(), heap()
	begin := time.Now()
	of, order := make(map[id.Subject]*Fields), make([]*Fields, 0, len(list))
	for i := range list {
		f := new(Fields)
		*f = list.fields(i)
		of[f.Subject] = f
		order = append(order, f)
	}
	added := time.Since(begin)
	r := rand.New(rand.NewPCG(2, 2))
	begin = time.Now()
	for range list {
		if of[list.subject(r.IntN(len(list)))] == nil {
			b.Fatal("a subject is missing")
		}
	}
	report(b, len(list), added, time.Since(begin))
	full := collection()
	b.ReportMetric(max((full-idle).Seconds()*1e3, 0)*1e6/float64(len(list)), "GC-ms/million")
	b.ReportMetric((heap()-before)/float64(len(list)), "B/event")
	runtime.KeepAlive(of)
	runtime.KeepAlive(order)
}
