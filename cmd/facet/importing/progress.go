package importing

import (
	"fmt"
	"io"
	"sync"
	"time"

	"facet.internal/client"
)

// The time between two lines is a tenth of the time that has passed, within these
// bounds. So an import of an hour does not fill the screen.
const (
	linePauseMin = 2 * time.Second
	linePauseMax = time.Minute
)

// progress prints a line about an import now and then, the same on a terminal and
// in a log. It is safe for concurrent use.
type progress struct {
	out   io.Writer
	total int
	begun time.Time

	mu      sync.Mutex // guards copied, counted, started and written
	copied  int        // photos that are in the object store
	counted Summary
	started time.Time // when the first job started
	written time.Time // when the last line was printed
}

func newProgress(out io.Writer, total int) *progress {
	now := time.Now()
	return &progress{out: out, total: total, begun: now, written: now}
}

// copy counts one photo that was copied to the object store.
func (p *progress) copy() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.copied++
	p.write()
}

// show takes the outcomes so far: those of finished pages, and those of the page in
// progress.
func (p *progress) show(finished Summary, page []client.BulkRecord) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.started.IsZero() {
		p.started = time.Now()
	}
	p.counted = finished
	for _, r := range page {
		if r.Status == "Processed" {
			p.counted.count(r)
		}
	}
	p.write()
}

// write prints a line if one is due. The caller holds mu.
func (p *progress) write() {
	now := time.Now()
	if now.Sub(p.written) < min(max(now.Sub(p.begun)/10, linePauseMin), linePauseMax) {
		return
	}
	p.written = now
	done := p.counted.Registered + p.counted.Failed
	if done == 0 {
		fmt.Fprintf(p.out, "%d of %d photos copied to the object store\n", p.copied, p.total)
		return
	}
	took := now.Sub(p.started)
	left := took / time.Duration(done) * time.Duration(p.total-done)
	fmt.Fprintf(p.out, "%d of %d photos done, %d failed, %d left (%.1f a second, %v to go)\n",
		done, p.total, p.counted.Failed, p.total-done, float64(done)/max(took.Seconds(), 1e-3), left.Round(time.Second))
}
