package codes

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"facet/internal/id"
	"facet/internal/stale"
	"facet/shard/kernel"
	"facet/shard/seal"
	"facet/shard/segment"
)

const (
	// PieceRows is the most rows of a piece.
	PieceRows = 16 * kernel.BlockRows

	magic     = "FACETCO1"
	headBytes = 16 + 4 + len(kernel.CodingID{}) + 2 + 2 + 8 + 4
	rowBytes  = 8 + 16 + 4
	// sealedMax is the largest sealed part: more than two bytes a number and a row's bounds.
	sealedMax = PieceRows*(rowBytes+2*kernel.DimMax+256) + seal.Overhead
	// piecesMax is the most pieces of a file.
	piecesMax = 1 << 16
)

// Place is the gallery and the coding of all rows of a piece.
type Place struct {
	Gallery    id.Gallery
	Generation uint32
	Coding     kernel.CodingID
	Dim        int
}

// Row names the face of a row.
type Row struct {
	Sequence uint64
	Event    id.Event
	Revision uint32
}

// Head describes a piece of a file. Only Opener proves it.
type Head struct {
	Place
	Rows int
	// First is the sequence of the first row.
	First uint64

	number uint32 // in the file
	offset int64  // of the sealed part
	length int
}

// append encodes the head without the length.
func (h *Head) append(b []byte) []byte {
	b = append(b, h.Gallery.UUID[:]...)
	b = binary.LittleEndian.AppendUint32(b, h.Generation)
	b = append(b, h.Coding[:]...)
	b = binary.LittleEndian.AppendUint16(b, uint16(h.Dim))
	b = binary.LittleEndian.AppendUint16(b, uint16(h.Rows))
	return binary.LittleEndian.AppendUint64(b, h.First)
}

func (h *Head) aad(b []byte, of segment.Hash) []byte {
	b = append(b, "facet codes"...)
	b = append(b, of[:]...)
	return h.append(binary.LittleEndian.AppendUint32(b, h.number))
}

// decode decodes the head of a piece whose sealed part starts at h.offset.
func (h *Head) decode(b []byte) error {
	h.Gallery.UUID = id.UUID(b[:16])
	h.Generation = binary.LittleEndian.Uint32(b[16:])
	b = b[20:]
	h.Coding = kernel.CodingID(b)
	b = b[len(h.Coding):]
	h.Dim, h.Rows = int(binary.LittleEndian.Uint16(b)), int(binary.LittleEndian.Uint16(b[2:]))
	h.First, h.length = binary.LittleEndian.Uint64(b[4:]), int(binary.LittleEndian.Uint32(b[12:]))
	if h.Dim < 1 || h.Dim > kernel.DimMax || h.Rows < kernel.BlockRows || h.Rows > PieceRows || h.Rows%kernel.BlockRows != 0 ||
		h.length < h.Rows*rowBytes+seal.Overhead || h.length > sealedMax {
		return fmt.Errorf("%w: a piece of %d rows of %d numbers in %d bytes", segment.ErrCorrupt, h.Rows, h.Dim, h.length)
	}
	return nil
}

// Writer writes the codes of one segment. The zero value with To and Of is ready.
type Writer struct {
	To io.Writer
	Of segment.Hash

	pieces uint32
	buf    []byte
}

// Piece writes a piece: rows, in ascending order of their sequences, and their blocks. It does not keep
// them, and leaves no codes in memory.
func (w *Writer) Piece(key *seal.Key, at Place, rows []Row, blocks []byte) error {
	h := Head{Place: at, Rows: len(rows), First: rows[0].Sequence, number: w.pieces}
	plain := slices.Grow(w.buf[:0], len(rows)*rowBytes+len(blocks))
	for _, r := range rows {
		plain = binary.LittleEndian.AppendUint64(plain, r.Sequence)
		plain = append(plain, r.Event.UUID[:]...)
		plain = binary.LittleEndian.AppendUint32(plain, r.Revision)
	}
	w.buf = append(plain, blocks...)
	sealed := key.Seal(w.buf, h.aad(nil, w.Of))
	clear(w.buf)
	b := h.append(nil)
	if w.pieces == 0 {
		b = h.append([]byte(magic))
	}
	w.pieces++
	b = binary.LittleEndian.AppendUint32(b, uint32(len(sealed)))
	if _, err := w.To.Write(append(b, sealed...)); err != nil {
		return fmt.Errorf("write codes: %w", err)
	}
	return nil
}

// Heads reads what pieces a file of size bytes has. It returns those before the damage, and an error
// that wraps segment.ErrCorrupt, of a damaged file.
func Heads(r io.ReaderAt, size int64) (list []Head, err error) {
	var b [headBytes]byte
	if err := segment.ReadAt(r, b[:len(magic)], 0); err != nil || string(b[:len(magic)]) != magic {
		return nil, fmt.Errorf("%w: it begins with %q", segment.ErrCorrupt, b[:len(magic)])
	}
	for at := int64(len(magic)); at < size; {
		if err := segment.ReadAt(r, b[:], at); err != nil {
			return list, err
		}
		h := Head{number: uint32(len(list)), offset: at + int64(headBytes)}
		if err := h.decode(b[:]); err != nil {
			return list, err
		}
		if at = h.offset + int64(h.length); at > size || len(list) == piecesMax {
			return list, fmt.Errorf("%w: piece %d ends at %d of %d", segment.ErrCorrupt, h.number, at, size)
		}
		list = append(list, h)
	}
	return list, nil
}

// Opener opens pieces in memory of its own, which the next one uses again. It is for one goroutine,
// which calls Clear at the end.
type Opener struct {
	sealed, plain, aad []byte
	rows               []Row
}

// Open opens a piece of the file of a segment. Rows and blocks are valid until the next call. The error
// wraps segment.ErrCorrupt, or comes from r.
func (o *Opener) Open(r io.ReaderAt, of segment.Hash, h Head, key *seal.Key) (rows []Row, blocks []byte, err error) {
	o.sealed = slices.Grow(o.sealed[:0], h.length)[:h.length]
	stale.Fill(o.sealed)
	stale.Fill(o.plain[:cap(o.plain)])
	if err := segment.ReadAt(r, o.sealed, h.offset); err != nil {
		return nil, nil, err
	}
	o.aad = h.aad(o.aad[:0], of)
	o.plain = slices.Grow(o.plain[:0], h.length)
	plain, err := key.OpenTo(o.plain, o.sealed, o.aad)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: piece %d: %w", segment.ErrCorrupt, h.number, err)
	}
	o.rows, blocks = o.rows[:0], plain[h.Rows*rowBytes:]
	for b := plain[:h.Rows*rowBytes]; len(b) > 0; b = b[rowBytes:] {
		o.rows = append(o.rows, Row{
			binary.LittleEndian.Uint64(b), id.Event{UUID: id.UUID(b[8:24])}, binary.LittleEndian.Uint32(b[24:]),
		})
	}
	return o.rows, blocks, nil
}

// Clear zeroes the codes.
func (o *Opener) Clear() { clear(o.plain[:cap(o.plain)]) }
