package backup

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/klauspost/compress/zstd"

	"facet/shard/seal"
)

// A part:
//
//	FACETBK1 | salt 16 | { length 4, sealed chunk }…
//
// A chunk is AES-256-GCM of up to chunkBytes of one zstd stream. It is bound to the backup's
// name, the part's name, the salt, its number, and whether it is the last one. So a reader
// notices anything that was changed, moved, left out or cut off. The stream is
//
//	{ length 4, record }…
const (
	partMagic = "FACETBK1"
	saltBytes = 16
	// chunkBytes is the plain length of all chunks but the last.
	chunkBytes = 1 << 20
	// recordBytesMax is the most bytes of a record.
	recordBytesMax = 2 << 20
	// zstdWindow limits the memory for reading a part.
	zstdWindow = 8 << 20
)

// ErrDamaged is returned for a part or manifest that was changed after it was written, or
// that another cluster key has sealed.
var ErrDamaged = errors.New("backup: damaged, or sealed with another cluster key")

// place names a part and its backup.
type place struct{ backup, part string }

// keyOf returns the key of a backup's chunks.
func keyOf(m *seal.Master, backup string) *seal.Key {
	secret := m.MAC("backup-key/1", []byte(backup))
	key, err := seal.NewKey(secret[:])
	if err != nil {
		panic("bug: " + err.Error())
	}
	return key
}

// aad returns the additional data that binds a chunk to its place.
func (p place) aad(salt []byte, number uint64, last bool) []byte {
	b := fmt.Appendf(nil, "facet backup 1\x00%s\x00%s\x00", p.backup, p.part)
	b = append(b, salt...)
	b = binary.BigEndian.AppendUint64(b, number)
	if last {
		return append(b, 1)
	}
	return append(b, 0)
}

// partWriter seals records into a part. It is for one goroutine.
type partWriter struct {
	to     io.Writer
	key    *seal.Key
	at     place
	salt   []byte
	number uint64
	chunk  []byte
	sum    hash.Hash
	bytes  int64
	z      *zstd.Encoder
}

// newPartWriter starts a part on w. The caller ends it with close.
func newPartWriter(w io.Writer, key *seal.Key, at place) (*partWriter, error) {
	p := &partWriter{to: w, key: key, at: at, salt: make([]byte, saltBytes), sum: sha256.New(), chunk: make([]byte, 0, chunkBytes)}
	if _, err := rand.Read(p.salt); err != nil {
		return nil, fmt.Errorf("make a salt: %w", err)
	}
	if err := p.out(append([]byte(partMagic), p.salt...)); err != nil {
		return nil, err
	}
	z, err := zstd.NewWriter(chunker{p}, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(zstdWindow), zstd.WithEncoderLevel(zstd.SpeedFastest))
	p.z = z
	return p, err
}

// record adds one record.
func (p *partWriter) record(b []byte) error {
	if len(b) > recordBytesMax {
		return fmt.Errorf("a record has %d bytes", len(b))
	}
	if _, err := p.z.Write(binary.BigEndian.AppendUint32(nil, uint32(len(b)))); err != nil {
		return err
	}
	_, err := p.z.Write(b)
	return err
}

// close ends the part and returns its length and SHA-256.
func (p *partWriter) close() (int64, [32]byte, error) {
	var sum [32]byte
	if err := p.z.Close(); err != nil {
		return 0, sum, err
	}
	if err := p.seal(true); err != nil {
		return 0, sum, err
	}
	p.sum.Sum(sum[:0])
	return p.bytes, sum, nil
}

// chunker receives the compressed stream.
type chunker struct{ p *partWriter }

// Write collects chunks and seals them.
func (c chunker) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		if len(c.p.chunk) == chunkBytes {
			if err := c.p.seal(false); err != nil {
				return n - len(b), err
			}
		}
		take := min(len(b), chunkBytes-len(c.p.chunk))
		c.p.chunk = append(c.p.chunk, b[:take]...)
		b = b[take:]
	}
	return n, nil
}

// seal writes the collected chunk.
func (p *partWriter) seal(last bool) error {
	sealed := p.key.Seal(p.chunk, p.at.aad(p.salt, p.number, last))
	p.number++
	p.chunk = p.chunk[:0]
	if err := p.out(binary.BigEndian.AppendUint32(nil, uint32(len(sealed)))); err != nil {
		return err
	}
	return p.out(sealed)
}

func (p *partWriter) out(b []byte) error {
	n, err := p.to.Write(b)
	p.bytes += int64(n)
	p.sum.Write(b[:n])
	return err
}

// partReader opens a part. It is for one goroutine.
type partReader struct {
	from   *bufio.Reader
	key    *seal.Key
	at     place
	salt   []byte
	number uint64
	plain  []byte
	last   bool
	sum    hash.Hash
	bytes  int64
	z      *zstd.Decoder
	buf    []byte
}

// openPart reads the head of a part. The caller closes the reader. The errors of openPart
// and next wrap ErrDamaged or come from r.
func openPart(r io.Reader, key *seal.Key, at place) (*partReader, error) {
	p := &partReader{from: bufio.NewReaderSize(r, 64<<10), key: key, at: at, sum: sha256.New()}
	head := make([]byte, len(partMagic)+saltBytes)
	if err := p.in(head); err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(head, []byte(partMagic)) {
		return nil, fmt.Errorf("%w: %s begins with %q", ErrDamaged, at.part, head[:len(partMagic)])
	}
	p.salt = head[len(partMagic):]
	z, err := zstd.NewReader(opener{p}, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdWindow))
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, at.part, err)
	}
	p.z = z
	return p, nil
}

// next returns the next record, which is valid until the next call. It returns io.EOF at the
// end of a whole part.
func (p *partReader) next() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(p.z, head[:]); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, p.end()
		}
		return nil, p.explain(err)
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > recordBytesMax {
		return nil, fmt.Errorf("%w: %s has a record of %d bytes", ErrDamaged, p.at.part, n)
	}
	if uint32(cap(p.buf)) < n {
		p.buf = make([]byte, n)
	}
	p.buf = p.buf[:n]
	if _, err := io.ReadFull(p.z, p.buf); err != nil {
		return nil, p.explain(err)
	}
	return p.buf, nil
}

// end returns io.EOF if the last chunk was read and nothing follows it, else an error.
func (p *partReader) end() error {
	if !p.last || len(p.plain) > 0 {
		if _, err := (opener{p}).Read(make([]byte, 1)); err == nil || !errors.Is(err, io.EOF) {
			return fmt.Errorf("%w: %s is cut", ErrDamaged, p.at.part)
		}
	}
	if _, err := p.from.ReadByte(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: %s goes on behind its end", ErrDamaged, p.at.part)
	}
	return io.EOF
}

// digest returns the length and SHA-256 of the bytes that were read.
func (p *partReader) digest() (int64, [32]byte) { return p.bytes, [32]byte(p.sum.Sum(nil)) }

func (p *partReader) close() { p.z.Close() }

func (p *partReader) explain(err error) error {
	if errors.Is(err, ErrDamaged) || !errors.Is(err, io.ErrUnexpectedEOF) && !isZstd(err) {
		return err
	}
	return fmt.Errorf("%w: %s: %w", ErrDamaged, p.at.part, err)
}

func isZstd(err error) bool {
	for _, known := range []error{
		zstd.ErrMagicMismatch, zstd.ErrReservedBlockType, zstd.ErrBlockTooSmall, zstd.ErrUnexpectedBlockSize,
		zstd.ErrCRCMismatch, zstd.ErrFrameSizeMismatch, zstd.ErrWindowSizeExceeded, zstd.ErrDecoderSizeExceeded,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// opener returns the compressed stream.
type opener struct{ p *partReader }

// Read opens the next chunk when the present one is empty.
func (o opener) Read(b []byte) (int, error) {
	p := o.p
	for len(p.plain) == 0 {
		if p.last {
			return 0, io.EOF
		}
		if err := p.open(); err != nil {
			return 0, err
		}
	}
	n := copy(b, p.plain)
	p.plain = p.plain[n:]
	return n, nil
}

// open opens the next chunk and notes whether it is the last one.
func (p *partReader) open() error {
	var head [4]byte
	if err := p.in(head[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n < seal.Overhead || n > chunkBytes+seal.Overhead {
		return fmt.Errorf("%w: %s has a chunk of %d bytes", ErrDamaged, p.at.part, n)
	}
	sealed := make([]byte, n)
	if err := p.in(sealed); err != nil {
		return err
	}
	plain, err := p.key.Open(sealed, p.at.aad(p.salt, p.number, false))
	if err != nil {
		if plain, err = p.key.Open(sealed, p.at.aad(p.salt, p.number, true)); err != nil {
			return fmt.Errorf("%w: chunk %d of %s", ErrDamaged, p.number, p.at.part)
		}
		p.last = true
	}
	p.number++
	p.plain = plain
	return nil
}

// in reads exactly len(b) bytes.
func (p *partReader) in(b []byte) error {
	n, err := io.ReadFull(p.from, b)
	p.bytes += int64(n)
	p.sum.Write(b[:n])
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: %s is cut after %d bytes", ErrDamaged, p.at.part, p.bytes)
	}
	return err
}
