// Package recent keeps the last lines of a log in memory, so that they can be read where nobody
// kept the log.
package recent

import (
	"bytes"
	"slices"
	"sync"
)

// lineMax is the most bytes that are kept of a line.
const lineMax = 4 << 10

// Lines has the last lines that were written. It is safe for concurrent use.
type Lines struct {
	bytesMax int

	mu    sync.Mutex // guards lines and size
	lines [][]byte   // the oldest first
	size  int
}

// New returns Lines that keep at most bytesMax bytes.
func New(bytesMax int) *Lines { return &Lines{bytesMax: bytesMax} }

// Write adds a line with its line break. It never fails.
func (l *Lines) Write(line []byte) (int, error) {
	kept := bytes.Clone(line)
	if len(kept) > lineMax {
		kept = append(kept[:lineMax:lineMax], '\n')
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines, l.size = append(l.lines, kept), l.size+len(kept)
	drop := 0
	for l.size > l.bytesMax {
		l.size -= len(l.lines[drop])
		drop++
	}
	l.lines = slices.Delete(l.lines, 0, drop) // and lets go of their memory
	return len(line), nil
}

// Text returns the lines, the oldest first.
func (l *Lines) Text() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Join(l.lines, nil)
}
