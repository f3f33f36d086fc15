package httpapi

import (
	"crypto/sha256"
	"hash"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

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
	taken int // bytes of Server.bodies, to be returned
	payer payer
	// done is set when the stream was read to its end.
	done bool
}

// readBody reads the body from r. It takes memory as the bytes come, never on the word of the
// client. On an error it keeps nothing of the budget.
func (s *Server) readBody(r *bodyReader, pays payer, use bodyUse) (body, error) {
	b := body{payer: pays}
	var err error
	if r.chunked || r.left > 0 {
		err = r.extend()
	}
	switch {
	case err != nil:
	case use == hashBody:
		err = hashOf(r, &b)
	default:
		err = s.fill(r, &b)
	}
	if err != nil {
		clear(b.bytes)
		s.giveBody(pays, b.taken)
		return body{}, err
	}
	b.done = true
	return b, nil
}

// hashOf hashes what r reads and drops it.
func hashOf(r *bodyReader, b *body) error {
	buffer := takeDrained()
	defer giveDrained(buffer)
	hash := sha256.New()
	defer forgetBlock(hash)
	for {
		left, _, err := r.next()
		if err != nil {
			return err
		}
		if left == 0 {
			hash.Sum(b.hash[:0])
			return nil
		}
		n, err := r.Read(buffer[:])
		hash.Write(buffer[:n])
		if err != nil {
			return err
		}
	}
}

// fill reads what r reads into b and hashes it.
func (s *Server) fill(r *bodyReader, b *body) error {
	hash := sha256.New()
	defer forgetBlock(hash)
	for {
		left, limit, err := r.next()
		if err != nil {
			return err
		}
		if left == 0 {
			hash.Sum(b.hash[:0])
			return nil
		}
		if len(b.bytes) == cap(b.bytes) && !s.grow(b, len(b.bytes)+limit) {
			return noRoom()
		}
		n, err := r.Read(b.bytes[len(b.bytes):cap(b.bytes)])
		hash.Write(b.bytes[len(b.bytes) : len(b.bytes)+n])
		b.bytes = b.bytes[:len(b.bytes)+n]
		if err != nil {
			return err
		}
	}
}

// forgetBlock overwrites the block of the body that h keeps.
func forgetBlock(h hash.Hash) {
	h.Reset()
	h.Write(make([]byte, h.BlockSize()-1))
}

// grow enlarges the room of b, up to length bytes. It returns false when the budget is
// spent.
func (s *Server) grow(b *body, length int) bool {
	room := min(length, max(bodyFirstBytes, 2*cap(b.bytes)))
	if !s.takeBody(b.payer, room-b.taken) {
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
func drain(rc *fasthttp.RequestCtx, r *bodyReader) bool {
	if !r.chunked && r.left == 0 {
		return true
	}
	if r.left > drainBytes || rc.Conn().SetReadDeadline(time.Now().Add(drainTime)) != nil {
		return false
	}
	r.extend = func() error { return nil }
	left, _, err := r.next()
	buffer := takeDrained()
	defer giveDrained(buffer)
	for all := 0; left > 0 && err == nil && all < drainBytes; {
		n := 0
		if n, err = r.Read(buffer[:]); err == nil {
			left, _, err = r.next()
		}
		all += n
	}
	return left == 0 && err == nil
}

// drained holds the buffers of drain, *[drainPiece]byte. io.Discard's own buffers
// are smaller than the buffer of the reader below, which would then copy everything
// once more.
var drained = sync.Pool{New: func() any { return new([drainPiece]byte) }}

func takeDrained() *[drainPiece]byte {
	buffer := drained.Get().(*[drainPiece]byte)
	stale.Fill(buffer[:])
	return buffer
}

func giveDrained(buffer *[drainPiece]byte) {
	clear(buffer[:])
	drained.Put(buffer)
}
