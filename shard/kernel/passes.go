package kernel

import (
	"slices"
	"sync"
)

// passes numbers the passes under way, so that exact rows are released only after all passes that
// may read them. Neither a pass nor the writer waits for that. Rows that are added to the chunk
// meanwhile are not among the retired ones (compare, in search.go).
//
//	pass 7  ├───────────────┤
//	pass 8       ├─────┤
//	retire            ×       last 8: released when 7 ends
//	pass 9              ├──────────┤      does not see these rows
type passes struct {
	// mu guards begun, running and retired. It is held for some instructions only.
	mu      sync.Mutex
	begun   uint64
	running []uint64  // ascending
	retired []retired // oldest first
}

// retired are exact rows that passes up to the number last may read.
type retired struct {
	last  uint64
	exact []byte
}

// begin returns the number of a pass that begins.
func (p *passes) begin() (number uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun++
	p.running = append(p.running, p.begun)
	return p.begun
}

// end ends a pass, and returns exact rows that no pass reads any more.
func (p *passes) end(number uint64) (unread [][]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i, _ := slices.BinarySearch(p.running, number)
	p.running = slices.Delete(p.running, i, i+1)
	return p.unread()
}

// retire returns exact rows that no pass reads any more, perhaps these. No chunk may have them.
func (p *passes) retire(exact []byte) (unread [][]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retired = append(p.retired, retired{p.begun, exact})
	return p.unread()
}

// unread removes and returns the rows that no pass reads any more.
func (p *passes) unread() (all [][]byte) {
	for len(p.retired) > 0 && (len(p.running) == 0 || p.retired[0].last < p.running[0]) {
		all = append(all, p.retired[0].exact)
		p.retired = slices.Delete(p.retired, 0, 1)
	}
	return all
}
