package codec

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
)

// Magic identifies a kind of stream.
type Magic [8]byte

// Format is the version of the framing that Writer writes.
const Format = 1

const (
	streamHeadBytes = 8 + 2 + 8
	trailerBytes    = 8 + sha256.Size
)

// ErrCorrupt is returned when a stream is damaged, cut short or of another kind.
var ErrCorrupt = errors.New("codec: corrupt stream")

// Writer writes a stream of records. It keeps its first error, which Close returns.
// It is for one goroutine.
type Writer struct {
	to      *bufio.Writer
	sum     hash.Hash
	records uint64
	bytes   int64
	err     error
}

// NewWriter starts a stream on w. index is the log index of the state in the
// stream.
func NewWriter(w io.Writer, magic Magic, index uint64) *Writer {
	out := &Writer{to: bufio.NewWriterSize(w, 16<<10), sum: sha256.New()}
	head := make([]byte, 0, streamHeadBytes)
	head = append(head, magic[:]...)
	head = binary.BigEndian.AppendUint16(head, Format)
	head = binary.BigEndian.AppendUint64(head, index)
	out.write(head)
	return out
}

// Record writes one record. It panics on a record of more than MessageMax bytes,
// which is a bug.
func (w *Writer) Record(h Head, v any) {
	if w.err != nil {
		return
	}
	b := Encode(h, v)
	if len(b) > MessageMax {
		panic(fmt.Sprintf("bug: record %d has %d bytes", h.Code, len(b)))
	}
	w.write(binary.BigEndian.AppendUint32(nil, uint32(len(b))))
	w.write(b)
	w.records++
}

// Close ends the stream with its trailer, which contains the returned sum. It does
// not close the underlying writer.
func (w *Writer) Close() (sum [sha256.Size]byte, err error) {
	w.write(binary.BigEndian.AppendUint64(make([]byte, 4), w.records))
	w.sum.Sum(sum[:0])
	w.write(sum[:])
	if w.err == nil {
		w.err = w.to.Flush()
	}
	if w.err != nil {
		return sum, fmt.Errorf("write stream: %w", w.err)
	}
	return sum, nil
}

// Bytes returns the number of bytes written so far.
func (w *Writer) Bytes() int64 { return w.bytes }

func (w *Writer) write(b []byte) {
	if w.err != nil {
		return
	}
	n, err := w.to.Write(b)
	w.bytes += int64(n)
	w.sum.Write(b)
	w.err = err
}

// Reader reads a stream of records. It is for one goroutine.
type Reader struct {
	from    io.Reader
	sum     hash.Hash
	index   uint64
	records uint64
	buf     bytes.Buffer
}

// NewReader reads the head of a stream from r. Another magic or format is an error
// that wraps ErrCorrupt.
func NewReader(r io.Reader, magic Magic) (*Reader, error) {
	in := &Reader{from: bufio.NewReaderSize(r, 16<<10), sum: sha256.New()}
	head, err := in.read(streamHeadBytes)
	if err != nil {
		return nil, err
	}
	if Magic(head[:8]) != magic {
		return nil, fmt.Errorf("%w: it begins with %q, want %q", ErrCorrupt, head[:8], magic[:])
	}
	if format := binary.BigEndian.Uint16(head[8:]); format != Format {
		return nil, fmt.Errorf("%w: format %d, want %d", ErrCorrupt, format, Format)
	}
	in.index = binary.BigEndian.Uint64(head[10:])
	return in, nil
}

// ReadAll calls take with each record of the stream r, and returns the log index in the
// stream's head. It returns the first error of take. Damage is an error that wraps
// ErrCorrupt. The caller must not trust a record before ReadAll has returned nil.
func ReadAll(r io.Reader, magic Magic, take func(Message) error) (index uint64, err error) {
	in, err := NewReader(r, magic)
	if err != nil {
		return 0, err
	}
	for {
		m, err := in.Next()
		if errors.Is(err, io.EOF) {
			return in.index, nil
		}
		if err == nil {
			err = take(m)
		}
		if err != nil {
			return 0, err
		}
	}
}

// Index returns the log index in the stream's head.
func (r *Reader) Index() uint64 { return r.index }

// Next returns the next record. Its body is valid until the next call. After the
// last record Next checks the trailer and the end and returns io.EOF. Damage is an
// error that wraps ErrCorrupt. The caller must not trust a record before it has
// seen io.EOF.
func (r *Reader) Next() (Message, error) {
	head, err := r.read(4)
	if err != nil {
		return Message{}, err
	}
	switch n := binary.BigEndian.Uint32(head); {
	case n == 0:
		return Message{}, r.trailer()
	case n < 2 || n > MessageMax:
		return Message{}, fmt.Errorf("%w: a record of %d bytes", ErrCorrupt, n)
	default:
		b, err := r.read(int64(n))
		if err != nil {
			return Message{}, err
		}
		r.records++
		return Split(b)
	}
}

func (r *Reader) trailer() error {
	count, err := r.read(8)
	if err != nil {
		return err
	}
	if n := binary.BigEndian.Uint64(count); n != r.records {
		return fmt.Errorf("%w: %d records, its trailer says %d", ErrCorrupt, r.records, n)
	}
	want := r.sum.Sum(nil)
	got, err := r.read(sha256.Size)
	if err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("%w: the checksum differs", ErrCorrupt)
	}
	switch n, err := io.ReadFull(r.from, make([]byte, 1)); {
	case n > 0:
		return fmt.Errorf("%w: bytes after its end", ErrCorrupt)
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("read stream: %w", err)
	}
	return io.EOF
}

// read returns the next n bytes, valid until the next call. Memory grows with the
// bytes that arrive, not with the promised length.
func (r *Reader) read(n int64) ([]byte, error) {
	r.buf.Reset()
	switch got, err := io.CopyN(&r.buf, r.from, n); {
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%w: it ends %d bytes early", ErrCorrupt, n-got)
	case err != nil:
		return nil, fmt.Errorf("read stream: %w", err)
	}
	r.sum.Write(r.buf.Bytes())
	return r.buf.Bytes(), nil
}
