package bulk

import (
	"testing"
	"time"

	"facet/internal/id"
	"facet/raftfsm/shardfsm"
	"facet/router"
	"facet/router/admission"
	"facet/shard/job"
)

func batchOf(n byte) shardfsm.JobName {
	return shardfsm.JobName{Gallery: id.Gallery{UUID: id.UUID{1}}, Generation: 1, Batch: id.Batch{UUID: id.UUID{2, n}}}
}

// bookOf returns a book with one open batch for each number, which is its number of
// items.
func bookOf(t *testing.T, totals ...int) *job.Book {
	t.Helper()
	book := job.New()
	for n, total := range totals {
		fill(t, book, batchOf(byte(n)), total)
	}
	return book
}

// fill adds an open batch with a number of items.
func fill(t *testing.T, book *job.Book, batch shardfsm.JobName, total int) {
	t.Helper()
	name := job.Name(batch)
	if _, err := book.Begin(job.Begin{Name: name, Total: uint32(total)}); err != nil {
		t.Fatal(err)
	}
	if _, err := book.Add(name, 0, make([][]byte, total), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := book.Open(name, 0); err != nil {
		t.Fatal(err)
	}
}

// every lets all galleries work.
func every(id.Gallery) bool { return true }

func indexes(p PieceAnswer) []uint32 {
	var list []uint32
	for _, r := range p.Records {
		list = append(list, r.Index)
	}
	return list
}

// An item is lent again only when its lease has ended.
func TestLeasedItemIsNotLentAgain(t *testing.T) {
	t.Parallel()
	book, now := bookOf(t, 5), time.Now()
	var l leases
	a, b, none := l.take(now, 1, book, job.Registrations, 3, every), l.take(now, 1, book, job.Registrations, 3, every), l.take(now, 1, book, job.Registrations, 3, every)
	if len(indexes(a)) != 3 || len(indexes(b)) != 2 || indexes(b)[0] != 3 || none.Lease != 0 {
		t.Fatalf("lent %v, %v, %v", indexes(a), indexes(b), indexes(none))
	}
	if rests := new(leases).take(now, 1, book, job.Registrations, 3, func(id.Gallery) bool { return false }); rests.Lease != 0 {
		t.Errorf("lent %v of a gallery that rests", indexes(rests))
	}
	later := now.Add(LeaseTime / 2)
	done := shardfsm.FinishJob{Name: batchOf(0), Results: []job.Result{{Index: 1}}}
	if !l.renew(later, a.Lease, done) {
		t.Error("a piece that is lent is not renewed")
	}
	if l.renew(later, a.Lease, shardfsm.FinishJob{Name: batchOf(1)}) || l.renew(later, a.Lease+99, done) {
		t.Error("a piece of another job is renewed")
	}
	if _, err := book.Finish(job.Name(batchOf(0)), done.Results, 0); err != nil {
		t.Fatal(err)
	}
	late := now.Add(LeaseTime + 1) // a was renewed, b was not
	if got := indexes(l.take(late, 1, book, job.Registrations, 9, every)); len(got) != 2 || got[0] != 3 {
		t.Errorf("after the end of a lease: %v", got)
	}
	if l.renew(late, b.Lease, shardfsm.FinishJob{Name: batchOf(0)}) {
		t.Error("a piece whose lease has ended is renewed")
	}
	if got := indexes(l.take(now.Add(3*LeaseTime), 1, book, job.Registrations, 9, every)); len(got) != 4 || got[0] != 0 || got[1] != 2 {
		t.Errorf("after the end of all leases: %v", got)
	}
}

func TestJobsShareTheWork(t *testing.T) {
	t.Parallel()
	book, now := bookOf(t, 100, 100, 3), time.Now()
	var l leases
	count := map[id.Batch]int{}
	for range 9 {
		p := l.take(now, 1, book, job.Registrations, 4, every)
		count[p.Name.Batch] += len(p.Records)
	}
	if a, b, c := count[batchOf(0).Batch], count[batchOf(1).Batch], count[batchOf(2).Batch]; a != 16 || b != 16 || c != 3 {
		t.Errorf("nine pieces: %d, %d and %d items", a, b, c)
	}
}

func TestPostponedGalleryLeavesRoomForOthers(t *testing.T) {
	t.Parallel()
	book, now := bookOf(t, 100, 5), time.Now()
	other := batchOf(2)
	other.Gallery = id.Gallery{UUID: id.UUID{9}}
	fill(t, book, other, 8)
	var l leases
	a := l.take(now, 1, book, job.Registrations, 4, every)
	for a.Name.Gallery == other.Gallery {
		a = l.take(now, 1, book, job.Registrations, 4, every)
	}
	l.postpone(now, a.Lease, a.Name.Gallery)
	if l.renew(now, a.Lease, shardfsm.FinishJob{Name: a.Name}) {
		t.Error("a piece that was given back is renewed")
	}
	at := now.Add(admission.ForgetRetry - 1)
	for range 2 {
		if p := l.take(at, 1, book, job.Registrations, 4, every); p.Name != other || len(p.Records) != 4 {
			t.Errorf("beside a postponed gallery: %v of %v", indexes(p), p.Name)
		}
	}
	if p := l.take(at, 1, book, job.Registrations, 4, every); p.Lease != 0 {
		t.Errorf("of the postponed gallery: %v", indexes(p))
	}
	if p := l.take(at.Add(1), 1, book, job.Registrations, 4, every); p.Name.Gallery != a.Name.Gallery {
		t.Errorf("later: %v of %v", indexes(p), p.Name)
	}
}

func TestPagingIDBelongsToItsJob(t *testing.T) {
	t.Parallel()
	a, b := batchOf(1).Batch, batchOf(2).Batch
	for _, from := range []uint32{0, 1000, 99_000, 1<<32 - 1} {
		text := newPagingID(a, from)
		if got, ok := readPagingID(a, text); !ok || got != from {
			t.Errorf("%d: %d, %v", from, got, ok)
		}
		if _, ok := readPagingID(b, text); ok {
			t.Errorf("%d: read as another job's", from)
		}
	}
}

func FuzzReadPagingID(f *testing.F) {
	batch := batchOf(1).Batch
	f.Add(newPagingID(batch, 1000))
	f.Add("")
	f.Add("AAAAAAAAAAA")
	f.Fuzz(func(t *testing.T, text string) {
		if from, ok := readPagingID(batch, text); ok && text != "" && newPagingID(batch, from) != text {
			t.Fatalf("%q is read as %d", text, from)
		}
	})
}

func TestFilenameStaysInItsFolder(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a.jpg", "staff/0001.jpg", "ä b/…/x.jpg", "..a", "a..", "a:b", ".hidden"} {
		if err := checkFilename(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{
		"", "/a", "a/", "a//b", ".", "..", "../a", "a/..", "a/../b", "./a", `a\b`, `..\a`, "a\x00", "a\nb", "\u0085", "\xff",
		"http://x/a", "file:///etc/passwd",
	} {
		if err := checkFilename(name); router.KindOf(err) != router.InvalidRequest {
			t.Errorf("%q: %v", name, err)
		}
	}
}
