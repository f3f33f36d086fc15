package httpapi

import (
	"errors"
	"io"
	"time"

	"github.com/valyala/fasthttp"
)

// A body comes with its length or in chunks (RFC 9112, §7.1). Chunks are read here
// and not by fasthttp, whose reader accepts trailers and extensions of any length.
// facet takes the plain form only, in which two readers see the same bytes:
//
//	1a2b CR LF  6,699 bytes CR LF  …  0 CR LF CR LF
//
// headerReceived makes fasthttp pass on the raw bytes.

const (
	// chunkDigitsMax is the most hexadecimal digits of a chunk's length.
	chunkDigitsMax = 8
	// chunksMax is the most chunks of a body. A chunk costs more than its bytes.
	chunksMax = 1 << 18
)

// bodyReader reads the bytes of one body.
type bodyReader struct {
	stream  io.Reader
	chunked bool
	// left is the number of bytes left of the current chunk, or of a body that is not
	// chunked.
	left int
	// room is the number of bytes that later chunks may have.
	room int
	// tooLarge is the refusal of a chunk beyond room.
	tooLarge *failure
	chunks   int
	ended    bool // the last chunk was read
	// extend gives the client time for the next paceBytes. paced counts those that came of the last ones.
	extend func() error
	paced  int
}

// newBodyReader returns the reader of the body that h announces. A body in chunks may
// have up to bodyBytes bytes.
func newBodyReader(stream io.Reader, h *head, bodyBytes int, extend func() error) *bodyReader {
	r := &bodyReader{stream: stream, chunked: h.chunked, left: h.length, extend: extend}
	if h.chunked {
		r.room, r.tooLarge = bodyBytes, tooLarge()
		if !takesBody(h.method) {
			r.room, r.tooLarge = 0, unwantedBody()
		}
	}
	return r
}

// next returns how many bytes come without a break, 0 at the body's end, and limit, the
// most bytes that are still to come.
func (r *bodyReader) next() (left, limit int, err error) {
	if r.chunked && !r.ended && r.left == 0 {
		if r.left, err = r.chunk(); err != nil {
			return 0, 0, err
		}
		r.ended = r.left == 0
	}
	return r.left, r.left + r.room, nil
}

// Read reads up to len(p) of the bytes that next announced.
func (r *bodyReader) Read(p []byte) (int, error) {
	n, err := r.stream.Read(p[:min(len(p), r.left)])
	if n == 0 {
		if err != nil {
			err = r.incomplete(err)
		}
		return 0, err
	}
	r.left -= n
	if r.paced += n; r.paced >= paceBytes {
		r.paced = 0
		if err := r.extend(); err != nil {
			return n, r.incomplete(err)
		}
	}
	if r.chunked && r.left == 0 {
		return n, r.lineEnd()
	}
	return n, nil // an error comes again
}

// chunk reads the length of the next chunk and checks it. After the last chunk, of
// length 0, it reads the end of the body.
func (r *bodyReader) chunk() (int, error) {
	length := 0
	for digits := 0; ; digits++ {
		c, err := r.byte()
		if err != nil {
			return 0, err
		}
		if c == '\r' && digits > 0 {
			break
		}
		v, ok := hexDigit(c)
		if !ok || digits == chunkDigitsMax {
			return 0, malformedChunk()
		}
		length = length<<4 | v
	}
	if err := r.expect('\n'); err != nil {
		return 0, err
	}
	if length > r.room {
		return 0, r.tooLarge
	}
	if length == 0 {
		return 0, r.lineEnd() // a trailer would stand here
	}
	if r.chunks++; r.chunks > chunksMax {
		return 0, badFrame("The body has too many chunks.")
	}
	r.room -= length
	return length, nil
}

// lineEnd reads CR LF.
func (r *bodyReader) lineEnd() error {
	if err := r.expect('\r'); err != nil {
		return err
	}
	return r.expect('\n')
}

// expect reads one byte, which must be want.
func (r *bodyReader) expect(want byte) error {
	c, err := r.byte()
	if err == nil && c != want {
		err = malformedChunk()
	}
	return err
}

// byte reads one byte between chunks. It never reads further, because the next request
// may follow.
func (r *bodyReader) byte() (byte, error) {
	var one [1]byte
	if _, err := io.ReadFull(r.stream, one[:]); err != nil {
		return 0, r.incomplete(err)
	}
	return one[0], nil
}

// hexDigit returns the value of a hexadecimal digit.
func hexDigit(c byte) (value int, ok bool) {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0'), true
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10, true
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10, true
	}
	return 0, false
}

// incomplete returns the answer to a body that ended early or came too slowly.
func (r *bodyReader) incomplete(err error) error {
	var n interface{ Timeout() bool }
	switch {
	case errors.As(err, &n) && n.Timeout():
		return gateway(fasthttp.StatusRequestTimeout, "The body came too slowly.")
	case r.chunked:
		return badFrame("The body ends before its last chunk.")
	}
	return badFrame("The body is shorter than Content-Length.")
}

// malformedChunk returns the answer to a body whose chunks are not in the plain form.
func malformedChunk() *failure {
	return badFrame("The body is not in plain chunks: only lengths and bytes are accepted, no extensions and no trailers.")
}

// tooLarge returns the answer to a body over the limit.
func tooLarge() *failure {
	return gateway(fasthttp.StatusRequestEntityTooLarge, "The body is too large.")
}

// unwantedBody returns the answer to a body where none may be.
func unwantedBody() *failure { return badFrame("A body is not accepted with this method.") }

// takesBody reports whether requests of a method may have a body.
func takesBody(method string) bool {
	return method == fasthttp.MethodPost || method == fasthttp.MethodPut || method == fasthttp.MethodPatch
}

// bodyOf returns the reader of the body of the request in rc.
func (s *Server) bodyOf(rc *fasthttp.RequestCtx, h *head) *bodyReader {
	last := time.Now().Add(bodyTimeMax)
	return newBodyReader(rc.RequestBodyStream(), h, s.cfg.Limits.BodyBytes, func() error {
		until := time.Now().Add(s.cfg.Limits.ReadTimeout / 2)
		if until.After(last) {
			until = last
		}
		return rc.Conn().SetReadDeadline(until)
	})
}
