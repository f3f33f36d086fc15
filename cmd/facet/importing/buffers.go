package importing

import (
	"bytes"
	"sync"

	"facet/internal/stale"
)

// buffers keeps the memory of photos for the next ones. It is safe for concurrent use.
type buffers struct{ pool sync.Pool }

// get returns an empty buffer.
func (b *buffers) get() *bytes.Buffer {
	buffer, ok := b.pool.Get().(*bytes.Buffer)
	if !ok {
		return new(bytes.Buffer)
	}
	free := buffer.AvailableBuffer()
	stale.Fill(free[:cap(free)])
	return buffer
}

// put takes a buffer back that nobody uses any more.
func (b *buffers) put(buffer *bytes.Buffer) {
	buffer.Reset()
	b.pool.Put(buffer)
}
