package httpapi

import (
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// budget bounds the bytes of all bodies in memory.
type budget struct {
	max  int64
	used atomic.Int64
}

// take reserves n bytes, or none and gives false.
func (b *budget) take(n int) bool {
	if b.used.Add(int64(n)) > b.max {
		b.used.Add(-int64(n))
		return false
	}
	return true
}

// give returns n bytes.
func (b *budget) give(n int) { b.used.Add(-int64(n)) }

// bodyUse says what becomes of a body.
type bodyUse uint8

const (
	keepBody bodyUse = iota
	hashBody         // it is hashed and dropped, as it comes: its sender is unknown
)

// body is a request's body, read completely.
type body struct {
	bytes []byte // nil with hashBody
	hash  [sha256.Size]byte
	taken int // bytes of the budget, to be given back
	// done tells that the stream was read to its end.
	done bool
}

// readBody reads length bytes from stream. Memory is taken as the bytes come,
// never on the word of Content-Length. On an error nothing stays taken.
func (s *Server) readBody(stream io.Reader, length int, use bodyUse) (body, error) {
	if length == 0 {
		return body{hash: sha256.Sum256(nil), done: true}, nil
	}
	var b body
	hash := sha256.New()
	if use == hashBody {
		n, err := io.Copy(hash, stream)
		if err != nil || n != int64(length) {
			return body{}, incomplete(err)
		}
		b.done = true
		hash.Sum(b.hash[:0])
		return b, nil
	}
	for len(b.bytes) < length {
		if len(b.bytes) == cap(b.bytes) && !s.grow(&b, length) {
			s.bodies.give(b.taken)
			f := gateway(fasthttp.StatusTooManyRequests, "Too many requests.")
			f.retryAfter = time.Second
			return body{}, f
		}
		n, err := stream.Read(b.bytes[len(b.bytes):cap(b.bytes)])
		hash.Write(b.bytes[len(b.bytes) : len(b.bytes)+n])
		b.bytes = b.bytes[:len(b.bytes)+n]
		if err != nil && len(b.bytes) < length {
			s.bodies.give(b.taken)
			return body{}, incomplete(err)
		}
	}
	b.done = true
	hash.Sum(b.hash[:0])
	return b, nil
}

// grow gives b more room, up to length bytes; false when the budget is spent.
func (s *Server) grow(b *body, length int) bool {
	room := min(length, max(bodyFirstBytes, 2*cap(b.bytes)))
	if !s.bodies.take(room - b.taken) {
		return false
	}
	b.taken = room
	larger := make([]byte, len(b.bytes), room)
	copy(larger, b.bytes)
	b.bytes = larger
	return true
}

// incomplete is the answer to a body that ended early or came too slowly.
func incomplete(err error) *failure {
	var n net.Error
	if errors.As(err, &n) && n.Timeout() {
		return gateway(fasthttp.StatusRequestTimeout, "The body came too slowly.")
	}
	return badFrame("The body is shorter than Content-Length.")
}
