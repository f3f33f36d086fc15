package photos

import (
	"fmt"
	"os"
	"sync"
	"time"

	"facet/cmd/facet/process"
)

const progressPause = 200 * time.Millisecond

// Progress is a line on a terminal with the progress of a measurement. It prints
// nothing elsewhere. It is safe for concurrent use, and a nil one prints nothing.
type Progress struct {
	out   *os.File
	total int
	begun time.Time

	mu   sync.Mutex // guards done and told
	done int
	told time.Time
}

// NewProgress returns the progress of total photographs on out, nil if that is no terminal.
func NewProgress(out *os.File, total int) *Progress {
	if out == nil || !process.IsTerminal(out) {
		return nil
	}
	return &Progress{out: out, total: total, begun: time.Now()}
}

// Add counts one photograph.
func (p *Progress) Add() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	if time.Since(p.told) < progressPause && p.done < p.total {
		return
	}
	p.told = time.Now()
	each := time.Since(p.begun) / time.Duration(p.done)
	left := (each * time.Duration(p.total-p.done)).Round(time.Second)
	fmt.Fprintf(p.out, "\r%d / %d photographs, %s left \x1b[K", p.done, p.total, left)
}

// Close removes the line.
func (p *Progress) Close() {
	if p != nil {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}
