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
	// BodyBytesMax is the most bytes of the body of a request or an answer.
	BodyBytesMax = 32 << 20
	// MethodBytesMax is the most bytes of a method's name.
	MethodBytesMax = 64
	// ErrorBytesMax is the most bytes of the payload of a handler's error.
	ErrorBytesMax = 64 << 10
	// messageBytesMax is the most bytes of the text of a handler's error; the rest
	// is cut.
	messageBytesMax = 1 << 10
	// frameExtraMax is the most bytes of a frame besides the body.
	frameExtraMax = requestBytesMin + MethodBytesMax
	// requestBytesMin and answerBytesMin are the lengths of empty frames.
	requestBytesMin = 4 + 4 + 1
	answerBytesMin  = 4 + 1
	// inlineBytesMax is the largest body that is copied so that one write sends it
	// with its header: one TLS record, one packet.
	inlineBytesMax = 16 << 10
)

// The status of an answer. Nodes of different versions exchange these numbers.
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
// The length counts the bytes after it. An answer has the number of its request.
// Numbers are big-endian.

// request is a parsed request.
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

// readFrame reads one frame of at most bytesMax bytes after its length. It calls
// begun when the first bytes have come, with the number of bytes that follow. It
// takes memory as bytes arrive, so a length alone costs nothing.
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

// unexpected turns an end of stream inside a frame into io.ErrUnexpectedEOF.
func unexpected(err error) error {
	if err == io.EOF { //nolint:errorlint // io.ReadFull and io.CopyN return it unwrapped
		return io.ErrUnexpectedEOF
	}
	return err
}

// parseRequest parses a request's frame. The body aliases b.
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

// parseAnswer parses the frame of the answer to the request of that number. It
// returns the body, or the error in the answer.
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

// failure returns the body of a statusFailed answer. It leaves out a payload that
// is too large.
func failure(message string, payload []byte) []byte {
	if len(payload) > ErrorBytesMax {
		payload = nil
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(len(payload)))
	b = append(b, payload...)
	return append(b, message[:min(len(message), messageBytesMax)]...)
}

// millis returns d in milliseconds, rounded up, so that some time left never
// becomes none.
func millis(d time.Duration) uint32 {
	n := (d + time.Millisecond - 1) / time.Millisecond
	return uint32(min(max(n, 1), math.MaxUint32))
}
