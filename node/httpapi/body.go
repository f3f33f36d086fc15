package httpapi

import (
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"facet/internal/id"
	"facet/internal/stale"
)

// bodyUse says how a body is processed.
type bodyUse uint8

const (
	keepBody bodyUse = iota
	hashBody         // the body is hashed and dropped as it comes: its sender is unknown
)

// body is a request's body, read completely.
type body struct {
	bytes []byte // nil with hashBody
	hash  [sha256.Size]byte
	taken int       // bytes of Server.bodies, to be returned
	whose id.Tenant // the tenant that they are counted for, as the request names it
	// done is set when the stream was read to its end.
	done bool
}

// readBody reads length bytes from stream for the tenant that the request names. It
// takes memory as the bytes come, never on the word of Content-Length. On an error
// it keeps nothing of the budget.
func (s *Server) readBody(stream io.Reader, length int, whose id.Tenant, use bodyUse) (body, error) {
	if length == 0 {
		return body{hash: sha256.Sum256(nil), done: true}, nil
	}
	b := body{whose: whose}
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
			s.bodies.Give(whose, int64(b.taken))
			f := gateway(fasthttp.StatusTooManyRequests, "Too many requests.")
			f.retryAfter = time.Second
			return body{}, f
		}
		n, err := stream.Read(b.bytes[len(b.bytes):cap(b.bytes)])
		hash.Write(b.bytes[len(b.bytes) : len(b.bytes)+n])
		b.bytes = b.bytes[:len(b.bytes)+n]
		if err != nil && len(b.bytes) < length {
			s.bodies.Give(whose, int64(b.taken))
			return body{}, incomplete(err)
		}
	}
	b.done = true
	hash.Sum(b.hash[:0])
	return b, nil
}

// grow enlarges the room of b, up to length bytes. It returns false when the budget is
// spent.
func (s *Server) grow(b *body, length int) bool {
	room := min(length, max(bodyFirstBytes, 2*cap(b.bytes)))
	if !s.bodies.Take(b.whose, int64(room-b.taken)) {
		return false
	}
	b.taken = room
	larger := make([]byte, len(b.bytes), room)
	copy(larger, b.bytes)
	clear(b.bytes)
	b.bytes = larger
	return true
}

// drain reads an unwanted body to its end, if the end is near. The connection can
// then serve another request; a new TLS handshake costs more than reading a short
// body. drain reports whether it reached the end.
func drain(rc *fasthttp.RequestCtx, length int) bool {
	stream := rc.RequestBodyStream()
	if length == 0 {
		return true
	}
	if length > drainBytes || stream == nil || rc.Conn().SetReadDeadline(time.Now().Add(drainTime)) != nil {
		return false
	}
	buffer := drained.Get().(*[drainPiece]byte)
	defer drained.Put(buffer)
	stale.Fill(buffer[:])
	for left := length; left > 0; {
		n, err := stream.Read(buffer[:])
		if left -= n; err != nil {
			return left == 0
		}
	}
	return true
}

// drained holds the buffers of drain, *[drainPiece]byte. io.Discard's own buffers
// are smaller than the buffer of the reader below, which would then copy everything
// once more.
var drained = sync.Pool{New: func() any { return new([drainPiece]byte) }}

// incomplete returns the answer to a body that ended early or came too slowly.
func incomplete(err error) *failure {
	var n net.Error
	if errors.As(err, &n) && n.Timeout() {
		return gateway(fasthttp.StatusRequestTimeout, "The body came too slowly.")
	}
	return badFrame("The body is shorter than Content-Length.")
}
