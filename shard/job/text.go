package job

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/fxamacker/cbor/v2"

	"facet/engine"
	"facet/internal/id"
	"facet/shard/seal"
)

// textVersion is the version of sealed texts; it is bound to them.
const textVersion = 1

// ErrText is returned for a sealed text of a form that this version does not read.
var ErrText = errors.New("job: unknown form of a sealed text")

// Item is a file to register.
type Item struct {
	Filename string `cbor:"1,keyasint"`
	// Tags are identities of tags.
	Tags []uint32 `cbor:"2,keyasint,omitempty"`
	// ExternalID and UserData are for the subject's note (shard.Note).
	ExternalID string `cbor:"3,keyasint,omitempty"`
	UserData   []byte `cbor:"4,keyasint,omitempty"`
	// Expires is when the event expires, in milliseconds since 1970, or 0.
	Expires int64 `cbor:"7,keyasint,omitempty"`
}

// Outcome is the result of an item, apart from the ids.
type Outcome struct {
	// Reason says why it failed.
	Reason string `cbor:"1,keyasint,omitempty"`
	// Attributes are the face's, nil without one.
	Attributes *engine.Attributes `cbor:"-"`
	// Numbers are those of Attributes, as they are stored.
	Numbers []float32 `cbor:"2,keyasint,omitempty"`
	// Ignored are other faces on the file. Only Face and Quality are kept of these people:
	// IgnoredNumbers has the sides and the quality of each, as they are stored.
	Ignored        []engine.Attributes `cbor:"-"`
	IgnoredNumbers [][5]float32        `cbor:"3,keyasint,omitempty"`
}

// SealItem encrypts an item for its place in a batch.
func SealItem(key *seal.Key, n Name, index uint32, item Item) []byte {
	return sealText(key, n, index, "item", item)
}

// OpenItem decrypts an item that SealItem made. The error wraps seal.ErrOpen or ErrText.
func OpenItem(key *seal.Key, n Name, index uint32, sealed []byte) (Item, error) {
	return openText[Item](key, n, index, "item", sealed, SealedMax)
}

// SealOutcome encrypts an outcome for its place in a batch.
func SealOutcome(key *seal.Key, n Name, index uint32, o Outcome) []byte {
	o.Numbers, o.IgnoredNumbers = nil, nil
	if o.Attributes != nil {
		for _, x := range o.Attributes.Numbers() {
			o.Numbers = append(o.Numbers, *x)
		}
	}
	for _, a := range o.Ignored {
		o.IgnoredNumbers = append(o.IgnoredNumbers, [5]float32{a.Face.Left, a.Face.Top, a.Face.Right, a.Face.Bottom, a.Quality})
	}
	return sealText(key, n, index, "outcome", o)
}

// OpenOutcome decrypts an outcome that SealOutcome made. The error wraps seal.ErrOpen or ErrText.
func OpenOutcome(key *seal.Key, n Name, index uint32, sealed []byte) (Outcome, error) {
	o, err := openText[Outcome](key, n, index, "outcome", sealed, SealedMax)
	if err != nil || len(o.Numbers) == 0 {
		return o, err
	}
	o.Attributes = new(engine.Attributes)
	fields := o.Attributes.Numbers()
	if len(o.Numbers) != len(fields) {
		return Outcome{}, fmt.Errorf("open outcome %d of batch %s: %w", index, n.Batch, ErrText)
	}
	for i, to := range fields {
		*to = o.Numbers[i]
	}
	for _, n := range o.IgnoredNumbers {
		o.Ignored = append(o.Ignored, engine.Attributes{Face: engine.Rect{Left: n[0], Top: n[1], Right: n[2], Bottom: n[3]}, Quality: n[4]})
	}
	return o, nil
}

// Block is a part of a gallery's shard to compare with the gallery.
type Block struct {
	Shard id.Shard `cbor:"1,keyasint"`
	// The events have sequences behind After, up to Last.
	After     uint64 `cbor:"2,keyasint"`
	Last      uint64 `cbor:"3,keyasint"`
	Threshold int    `cbor:"4,keyasint"`
}

// SealBlock encrypts a block for its place in a batch.
func SealBlock(key *seal.Key, n Name, index uint32, b Block) []byte {
	return sealText(key, n, index, "block", b)
}

// OpenBlock decrypts a block that SealBlock made. The error wraps seal.ErrOpen or ErrText.
func OpenBlock(key *seal.Key, n Name, index uint32, sealed []byte) (Block, error) {
	return openText[Block](key, n, index, "block", sealed, SealedMax)
}

// Pair is two subjects and the score of their best events.
type Pair struct {
	A, B  id.Subject
	Score int
}

// Pairs are the pairs of a block.
type Pairs struct {
	List []Pair `cbor:"-"`
	// Packed has both ids and two bytes of the score for each pair, as they are stored.
	Packed []byte `cbor:"1,keyasint,omitempty"`
	// Cut reports that there were more pairs.
	Cut bool `cbor:"2,keyasint,omitempty"`
	// Reason says why the block could not be compared.
	Reason string `cbor:"3,keyasint,omitempty"`
}

const (
	// PairsMax is the most pairs of a block.
	PairsMax = 4096

	pairBytes      = 2*len(id.UUID{}) + 2
	pairsSealedMax = PairsMax*pairBytes + SealedMax
)

// SealPairs encrypts the pairs of a block.
func SealPairs(key *seal.Key, n Name, index uint32, p Pairs) []byte {
	p.Packed = make([]byte, 0, len(p.List)*pairBytes)
	defer clear(p.Packed[:cap(p.Packed)])
	for _, pair := range p.List {
		p.Packed = append(append(p.Packed, pair.A.UUID[:]...), pair.B.UUID[:]...)
		p.Packed = binary.BigEndian.AppendUint16(p.Packed, uint16(pair.Score))
	}
	return sealText(key, n, index, "pairs", p)
}

// OpenPairs decrypts pairs that SealPairs made. The error wraps seal.ErrOpen or ErrText.
func OpenPairs(key *seal.Key, n Name, index uint32, sealed []byte) (Pairs, error) {
	p, err := openText[Pairs](key, n, index, "pairs", sealed, pairsSealedMax)
	if err != nil {
		return p, err
	}
	if len(p.Packed)%pairBytes != 0 {
		return Pairs{}, fmt.Errorf("open pairs %d of batch %s: %w", index, n.Batch, ErrText)
	}
	for b := p.Packed; len(b) > 0; b = b[pairBytes:] {
		p.List = append(p.List, Pair{
			A: id.Subject{UUID: id.UUID(b)}, B: id.Subject{UUID: id.UUID(b[len(id.UUID{}):])},
			Score: int(binary.BigEndian.Uint16(b[pairBytes-2:])),
		})
	}
	return p, nil
}

func sealText(key *seal.Key, n Name, index uint32, kind string, v any) []byte {
	plain, err := cbor.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("bug: encode %s: %v", kind, err))
	}
	defer clear(plain)
	return key.Seal(plain, place(n, index, kind))
}

func openText[T any](key *seal.Key, n Name, index uint32, kind string, sealed []byte, most int) (T, error) {
	var v T
	if len(sealed) > most {
		return v, fmt.Errorf("open %s %d of batch %s: %w: %d bytes", kind, index, n.Batch, ErrText, len(sealed))
	}
	plain, err := key.Open(sealed, place(n, index, kind))
	if err != nil {
		return v, fmt.Errorf("open %s %d of batch %s: %w", kind, index, n.Batch, err)
	}
	defer clear(plain)
	if err := cbor.Unmarshal(plain, &v); err != nil {
		return v, fmt.Errorf("open %s %d of batch %s: %w", kind, index, n.Batch, ErrText)
	}
	return v, nil
}

// place returns the additional data that bind a text to its place.
func place(n Name, index uint32, kind string) []byte {
	b := append(make([]byte, 0, 80), "facet job "...)
	b = append(b, kind...)
	b = append(b, 0, textVersion)
	b = append(b, n.Gallery.UUID[:]...)
	b = binary.BigEndian.AppendUint32(b, n.Generation)
	b = append(b, n.Batch.UUID[:]...)
	return binary.BigEndian.AppendUint32(b, index)
}
