package bulk

import (
	"maps"
	"sync"
	"time"

	"facet/internal/id"
	"facet/raftfsm/shardfsm"
	"facet/router/admission"
	"facet/shard/job"
)

// A shard's leader lends pieces of jobs to workers. It keeps the leases in memory
// only. A lost lease costs nothing but repeated work, because the operation of an
// item (itemOperation) makes its registration happen once.
const (
	// PieceMax is the most items of a piece.
	PieceMax = 32
	// LeaseTime is how long a lease lasts. Each report on the piece renews it.
	LeaseTime = 8 * time.Second

	// leasesMax is the most pieces that a node lends at once.
	leasesMax = 4096
)

// leases contains the pieces that this node has lent as the leader of shards.
type leases struct {
	// mu guards the fields below. While it is held, only methods of job.Book are
	// called.
	mu   sync.Mutex
	last uint64
	lent map[uint64]*lease
	// postponed has the galleries whose files are not lent before a time.
	postponed map[id.Gallery]time.Time
}

type lease struct {
	group   id.Shard
	name    job.Name
	indexes map[uint32]bool
	until   time.Time
}

// take lends a piece of the batch of a kind that has the fewest lent items, of the galleries that may work.
func (l *leases) take(now time.Time, group id.Shard, book *job.Book, kind job.Kind, n int, may func(id.Gallery) bool) PieceAnswer {
	l.mu.Lock()
	defer l.mu.Unlock()
	lent := l.prune(now)
	if len(l.lent) >= leasesMax {
		return PieceAnswer{}
	}
	work := book.Work(kind)
	for len(work) > 0 {
		least := 0
		for i, name := range work {
			if len(lent[name]) < len(lent[work[least]]) {
				least = i
			}
		}
		name := work[least]
		busy := lent[name]
		records, application, err := book.Unfinished(name, n, func(index uint32) bool { return busy[index] })
		if err != nil || len(records) == 0 || now.Before(l.postponed[name.Gallery]) || !may(name.Gallery) {
			work = append(work[:least], work[least+1:]...)
			continue
		}
		return l.lend(now, group, name, application, records)
	}
	return PieceAnswer{}
}

func (l *leases) lend(now time.Time, group id.Shard, name job.Name, application id.Application, records []job.Record) PieceAnswer {
	if l.lent == nil {
		l.lent = map[uint64]*lease{}
		l.last = uint64(now.UnixNano()) // so the numbers differ from another leader's
	}
	l.last++
	piece := &lease{group, name, make(map[uint32]bool, len(records)), now.Add(LeaseTime)}
	for _, r := range records {
		piece.indexes[r.Index] = true
	}
	l.lent[l.last] = piece
	return PieceAnswer{
		Lease: l.last, Application: application, Records: records,
		Name: shardfsm.JobName(name),
	}
}

// prune drops expired leases. It returns the lent items of each batch.
func (l *leases) prune(now time.Time) map[job.Name]map[uint32]bool {
	lent := map[job.Name]map[uint32]bool{}
	for number, piece := range l.lent {
		if now.After(piece.until) {
			delete(l.lent, number)
			continue
		}
		of := lent[piece.name]
		if of == nil {
			of = map[uint32]bool{}
			lent[piece.name] = of
		}
		for index := range piece.indexes {
			of[index] = true
		}
	}
	return lent
}

// renew removes the finished items from a piece and renews its lease. It returns
// false when the lease has expired.
func (l *leases) renew(now time.Time, number uint64, f shardfsm.FinishJob) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	piece := l.lent[number]
	if piece == nil || piece.name != job.Name(f.Name) || now.After(piece.until) {
		return false
	}
	for _, r := range f.Results {
		delete(piece.indexes, r.Index)
	}
	if len(piece.indexes) == 0 {
		delete(l.lent, number)
		return true
	}
	piece.until = now.Add(LeaseTime)
	return true
}

// postpone drops a lease and lends no files for its gallery for admission.ForgetRetry.
func (l *leases) postpone(now time.Time, number uint64, gallery id.Gallery) {
	l.drop(number)
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.postponed, func(_ id.Gallery, until time.Time) bool { return !now.Before(until) })
	if l.postponed == nil {
		l.postponed = map[id.Gallery]time.Time{}
	}
	l.postponed[gallery] = now.Add(admission.ForgetRetry)
}

func (l *leases) drop(number uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.lent, number)
}

// PieceAnswer is a piece of a job. Lease is 0 when there is no work.
type PieceAnswer struct {
	Lease       uint64           `cbor:"1,keyasint"`
	Name        shardfsm.JobName `cbor:"2,keyasint"`
	Application id.Application   `cbor:"3,keyasint"`
	Records     []job.Record     `cbor:"4,keyasint"`
}
