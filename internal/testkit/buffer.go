package testkit

import (
	"bytes"
	"sync"
)

// Buffer collects a log or the output of a process, while others read it.
type Buffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

// Write adds to the output.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// String returns the output so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
