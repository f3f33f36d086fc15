package transport

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"time"
)

// Bounds of internal requests.
const (
	// BodyBytesMax bounds the body of a request and of an answer.
	BodyBytesMax = 32 << 20
	// MethodBytesMax bounds a method's name.
	MethodBytesMax = 64
	// ErrorBytesMax bounds the payload of a handler's error.
	ErrorBytesMax = 64 << 10
	// messageBytesMax bounds the text of a handler's error; the rest is cut.
	messageBytesMax = 1 << 10
	// frameExtraMax bounds what a frame has besides the body.
	frameExtraMax = requestBytesMin + MethodBytesMax
	// requestBytesMin and answerBytesMin are the lengths of frames that are empty.
	requestBytesMin = 4 + 4 + 1
	answerBytesMin  = 4 + 1
	// inlineBytesMax is the largest body that is copied to be written together
	// with its header: one TLS record, one packet.
	inlineBytesMax = 16 << 10
)

// The status of an answer. The numbers are spoken between versions.
const (
	statusDone    = 0 // the rest is the body
	statusFailed  = 1 // u32 length of the payload, payload, message
	statusRefused = 2 // no handler saw the request; the rest is the message
)

// A request and an answer are one frame each, in turn, on one stream:
//
//	request  u32 length │ u32 number │ u32 milliseconds left │ u8 length │ method │ body
//	answer   u32 length │ u32 number │ u8 status │ body, or the error
//
// The length counts what follows it; an answer has its request's number; numbers
// are big-endian.

// request is a request as it was read.
type request struct {
	number  uint32
	timeout time.Duration
	method  string
	body    []byte
}

// writeRequest writes a request. An error means that the frame is incomplete.
func writeRequest(w io.Writer, q request) error {
	head := make([]byte, 0, 4+frameExtraMax+min(len(q.body), inlineBytesMax))
	head = binary.BigEndian.AppendUint32(head, uint32(requestBytesMin+len(q.method)+len(q.body)))
	head = binary.BigEndian.AppendUint32(head, q.number)
	head = binary.BigEndian.AppendUint32(head, millis(q.timeout))
	head = append(head, byte(len(q.method)))
	head = append(head, q.method...)
	return writeFrame(w, head, q.body)
}

// writeAnswer writes the answer to the request of that number.
func writeAnswer(w io.Writer, number uint32, status byte, body []byte) error {
	head := make([]byte, 0, 4+answerBytesMin+min(len(body), inlineBytesMax))
	head = binary.BigEndian.AppendUint32(head, uint32(answerBytesMin+len(body)))
	head = binary.BigEndian.AppendUint32(head, number)
	return writeFrame(w, append(head, status), body)
}

func writeFrame(w io.Writer, head, body []byte) error {
	if len(body) <= inlineBytesMax {
		_, err := w.Write(append(head, body...))
		return err
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	_, err := w.Write(body)
	return err
}

// readFrame reads one frame of at most bytesMax bytes after its length. begun is
// called when its first bytes are there, with how many follow. Memory is taken as bytes arrive, so that
// a length alone costs nothing.
func readFrame(r io.Reader, bytesMax int, begun func(n int) error) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if int64(n) > int64(bytesMax) {
		return nil, fmt.Errorf("%w: a frame of %d bytes", ErrTooLarge, n)
	}
	if err := begun(int(n)); err != nil {
		return nil, err
	}
	if n <= inlineBytesMax {
		b := make([]byte, n)
		_, err := io.ReadFull(r, b)
		return b, unexpected(err)
	}
	var b bytes.Buffer
	b.Grow(inlineBytesMax)
	if _, err := io.CopyN(&b, r, int64(n)); err != nil {
		return nil, unexpected(err)
	}
	return b.Bytes(), nil
}

// unexpected makes an end of stream inside a frame an error of its own.
func unexpected(err error) error {
	if err == io.EOF { //nolint:errorlint // io.ReadFull and io.CopyN give it unwrapped
		return io.ErrUnexpectedEOF
	}
	return err
}

// parseRequest reads a request's frame. The body is b's own memory.
func parseRequest(b []byte) (request, error) {
	if len(b) < requestBytesMin || b[8] > MethodBytesMax || len(b) < requestBytesMin+int(b[8]) {
		return request{}, fmt.Errorf("request of %d bytes: malformed", len(b))
	}
	n := requestBytesMin + int(b[8])
	return request{
		number:  binary.BigEndian.Uint32(b),
		timeout: time.Duration(binary.BigEndian.Uint32(b[4:])) * time.Millisecond,
		method:  string(b[requestBytesMin:n]),
		body:    b[n:],
	}, nil
}

// parseAnswer reads the frame of the answer to the request of that number: a body,
// or the error that it carries.
func parseAnswer(b []byte, number uint32) ([]byte, error) {
	if len(b) < answerBytesMin || binary.BigEndian.Uint32(b) != number {
		return nil, fmt.Errorf("%w: %d bytes that answer something else", ErrOutcomeUnknown, len(b))
	}
	rest := b[answerBytesMin:]
	switch b[4] {
	case statusDone:
		return rest, nil
	case statusRefused:
		return nil, fmt.Errorf("%w: refused: %.200q", ErrNotSent, rest)
	case statusFailed:
		if len(rest) >= 4 {
			n := binary.BigEndian.Uint32(rest)
			if rest = rest[4:]; uint64(n) <= uint64(len(rest)) && n <= ErrorBytesMax {
				e := &RemoteError{Message: string(rest[n:min(len(rest), int(n)+messageBytesMax)])}
				if n > 0 {
					e.Payload = rest[:n:n]
				}
				return nil, e
			}
		}
	}
	return nil, fmt.Errorf("%w: malformed answer of %d bytes", ErrOutcomeUnknown, len(b))
}

// failure gives the body of a statusFailed answer. An error's payload that is too
// large is left out.
func failure(message string, payload []byte) []byte {
	if len(payload) > ErrorBytesMax {
		payload = nil
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(len(payload)))
	b = append(b, payload...)
	return append(b, message[:min(len(message), messageBytesMax)]...)
}

// millis rounds up, so that time left is never none.
func millis(d time.Duration) uint32 {
	n := (d + time.Millisecond - 1) / time.Millisecond
	return uint32(min(max(n, 1), math.MaxUint32))
}
