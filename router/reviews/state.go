package reviews

import (
	"cmp"
	"sync"
	"sync/atomic"

	"facet/internal/fair"
	"facet/internal/id"
	"facet/router"
	"facet/shard/job"
)

// The leader of a gallery's home keeps the cases of the gallery decrypted, so that a request about one case opens
// no other. This index is a copy of the records in its replica: before each use it takes over the records that
// were set since the last one (job.Book.Changes). So it is right whoever has set them, an earlier leader, a
// snapshot, a backup or a round of erasure, and who leads is checked where it always is: by the read index before
// a look, and by the text that a change replaces.

const (
	// indexedCasesMax is the most cases that a node keeps decrypted.
	indexedCasesMax = 10 * router.CasesMax
	// caseLooksMax is the most requests that wait for a look at cases.
	caseLooksMax = 1024
)

// galleryCases holds the decrypted cases of one gallery, and what its leader needs to change them.
type galleryCases struct {
	// turn has room for one: the leader changes one case of a gallery at a time.
	turn chan struct{}
	// The index, its tenant and its last use belong to the turns of caseWork.looks.
	index  caseIndex
	tenant id.Tenant
	used   uint64
	open   openCases // as of the last change or round of erasure here; caseWork.mu guards it
}

// of returns what this node has of a gallery's cases.
func (w *caseWork) of(batch id.Batch) *galleryCases {
	w.mu.Lock()
	defer w.mu.Unlock()
	g := w.galleries[batch]
	if g == nil {
		g = &galleryCases{turn: make(chan struct{}, 1)}
		w.galleries[batch] = g
	}
	return g
}

// note remembers how many cases of a gallery are open.
func (w *caseWork) note(g *galleryCases, now int64) {
	o := g.index.figures(now)
	w.mu.Lock()
	defer w.mu.Unlock()
	g.open = o
}

// makeRoom forgets the decrypted cases of galleries until indexedCasesMax are left. The tenant that has the most
// gives way, with its gallery that was used least recently; never the gallery in use.
func (w *caseWork) makeRoom(inUse *galleryCases) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		held, all := map[id.Tenant]int{}, 0
		for _, g := range w.galleries {
			held[g.tenant] += len(g.index.items)
			all += len(g.index.items)
		}
		if all <= indexedCasesMax {
			return
		}
		var out *galleryCases
		for _, g := range w.galleries {
			if g != inUse && len(g.index.items) > 0 && (out == nil ||
				cmp.Or(cmp.Compare(held[g.tenant], held[out.tenant]), cmp.Compare(out.used, g.used)) > 0) {
				out = g
			}
		}
		out.index = caseIndex{}
	}
}

// keepOnly forgets the galleries whose cases are not among those that this node leads.
func (w *caseWork) keepOnly(led map[id.Batch]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for batch := range w.galleries {
		if !led[batch] {
			delete(w.galleries, batch)
		}
	}
}

// caseWork is the work of a node as the leader of homes.
type caseWork struct {
	// looks lets one request at a time look at the cases of a gallery.
	looks *fair.Queue
	uses  uint64 // counts looks
	// closed counts cases by the state in which they were closed here, and dropped doubtful verifications of
	// this node that got no case.
	closed  [job.CaseErased + 1]atomic.Uint64
	dropped atomic.Uint64

	mu        sync.Mutex // guards galleries
	galleries map[id.Batch]*galleryCases
}

func newCaseWork() *caseWork {
	return &caseWork{looks: fair.NewQueue(1, caseLooksMax), galleries: map[id.Batch]*galleryCases{}}
}
