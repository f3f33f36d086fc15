package claim

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"facet/internal/codec"
	"facet/internal/id"
	"facet/shard"
)

// The records of a book in a snapshot; the codes 8 to 11 belong to this package. A book that has had
// no claim has none.
var (
	headTable  = codec.Head{Code: 8, Version: 1}
	headClaims = codec.Head{Code: 9, Version: 1}
	headBars   = codec.Head{Code: 10, Version: 1}
)

const (
	entryBytes = len(shard.ExternalName{}) + len(id.UUID{}) + 2
	// chunk is the number of claims, or of bars, of a record, except the last one.
	chunk = 1024
)

// ErrSnapshot is returned when records contradict each other.
var ErrSnapshot = errors.New("claim: the snapshot is not consistent")

// tableRecord precedes the claims of its gallery.
type tableRecord struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Claims     uint64     `cbor:"3,keyasint"`
}

// claimsRecord has claims one behind the other: name 10, subject 16, turn 2 (big-endian).
type claimsRecord struct {
	Claims []byte `cbor:"1,keyasint"`
}

// barsRecord has the counts of all claims and of all bars, and the subjects of the last bars, 16
// bytes each.
type barsRecord struct {
	Turns uint64 `cbor:"1,keyasint"`
	Count uint64 `cbor:"2,keyasint,omitempty"`
	Bars  []byte `cbor:"3,keyasint,omitempty"`
}

// View is a book's state at one moment, for a snapshot. It shares memory with the book.
type View struct {
	tables []tableView
	bars   barsRecord
}

type tableView struct {
	head   tableRecord
	leaves [][]entry
}

// Freeze captures the state. It copies a pointer for every 150 to 300 claims, and the bars.
func (b *Book) Freeze() *View {
	b.mu.RLock()
	defer b.mu.RUnlock()
	v := &View{bars: barsRecord{Turns: b.state.turns, Count: b.state.count}}
	for g, t := range b.state.tables {
		v.tables = append(v.tables, tableView{tableRecord{g, t.generation, uint64(t.n)}, slices.Clone(t.leaves)})
	}
	slices.SortFunc(v.tables, func(a, b tableView) int { return bytes.Compare(a.head.Gallery.UUID[:], b.head.Gallery.UUID[:]) })
	for _, s := range b.state.bars {
		v.bars.Bars = append(v.bars.Bars, s.UUID[:]...)
	}
	return v
}

// Write adds the records of v to w, in an order that depends on the state only.
func (v *View) Write(w *codec.Writer) {
	for _, t := range v.tables {
		w.Record(headTable, t.head)
		var b []byte
		for _, leaf := range t.leaves {
			for _, e := range leaf {
				b = append(b, e.name[:]...)
				b = append(b, e.holder.Subject.UUID[:]...)
				b = binary.BigEndian.AppendUint16(b, e.holder.Turn)
				if len(b) == chunk*entryBytes {
					w.Record(headClaims, claimsRecord{b})
					b = b[:0]
				}
			}
		}
		if len(b) > 0 {
			w.Record(headClaims, claimsRecord{b})
		}
	}
	if v.bars.Turns > 0 || v.bars.Count > 0 {
		w.Record(headBars, v.bars)
	}
}

// Loader builds a state from the records of a snapshot.
type Loader struct {
	state *state
	// The next claims belong to table, the last one. missing is how many are still to come.
	table   *table
	missing uint64
	last    id.Gallery
	barred  bool
}

// NewLoader returns an empty loader.
func NewLoader() *Loader { return &Loader{state: newState()} }

// Load reads the next record; mine is false if the record belongs to another package. The error
// wraps codec.ErrMalformed or ErrSnapshot.
func (l *Loader) Load(m codec.Message) (mine bool, err error) {
	switch m.Code {
	case headTable.Code:
		return true, codec.Take(m, headTable, l.begin)
	case headClaims.Code:
		return true, codec.Take(m, headClaims, l.claims)
	case headBars.Code:
		return true, codec.Take(m, headBars, l.bars)
	default:
		return false, nil
	}
}

func (l *Loader) begin(r tableRecord) error {
	if l.missing > 0 || l.barred || r.Claims == 0 || l.table != nil && bytes.Compare(r.Gallery.UUID[:], l.last.UUID[:]) <= 0 {
		return fmt.Errorf("%w: claims of gallery %s are out of place", ErrSnapshot, r.Gallery)
	}
	l.table, l.missing, l.last = &table{generation: r.Generation}, r.Claims, r.Gallery
	l.state.tables[r.Gallery] = l.table
	return nil
}

func (l *Loader) claims(r claimsRecord) error {
	n := len(r.Claims) / entryBytes
	if n == 0 || len(r.Claims)%entryBytes != 0 || uint64(n) > l.missing {
		return fmt.Errorf("%w: %d bytes of claims are out of place", ErrSnapshot, len(r.Claims))
	}
	l.missing -= uint64(n)
	for b := r.Claims; len(b) > 0; b = b[entryBytes:] {
		e := entry{shard.ExternalName(b), Holder{id.Subject{UUID: id.UUID(b[10:26])}, binary.BigEndian.Uint16(b[26:])}}
		if e.holder.Subject.IsZero() || !l.table.push(e) {
			return fmt.Errorf("%w: claims are out of order", ErrSnapshot)
		}
	}
	if l.missing == 0 {
		l.table.clip()
	}
	return nil
}

// push adds a claim behind all others. It returns false if the claim belongs elsewhere.
func (t *table) push(e entry) bool {
	last := len(t.leaves) - 1
	if last >= 0 {
		leaf := t.leaves[last]
		if bytes.Compare(e.name[:], leaf[len(leaf)-1].name[:]) <= 0 {
			return false
		}
	}
	if last < 0 || len(t.leaves[last]) == leafLoaded {
		t.clip()
		t.leaves = append(t.leaves, make([]entry, 0, leafLoaded))
		last++
	}
	t.leaves[last] = append(t.leaves[last], e)
	t.n++
	return true
}

// leafLoaded is the number of claims of a leaf from a snapshot: 6 KiB, with room for more.
const leafLoaded = 219

// clip frees the spare room of the last leaf.
func (t *table) clip() {
	if last := len(t.leaves) - 1; last >= 0 && len(t.leaves[last]) < cap(t.leaves[last]) {
		t.leaves[last] = slices.Clone(t.leaves[last])
	}
}

func (l *Loader) bars(r barsRecord) error {
	n := len(r.Bars) / len(id.UUID{})
	if l.missing > 0 || l.barred || r.Turns+r.Count == 0 || len(r.Bars)%len(id.UUID{}) != 0 || n > barsMax || uint64(n) != min(r.Count, barsMax) {
		return fmt.Errorf("%w: %d bars of %d", ErrSnapshot, n, r.Count)
	}
	l.barred, l.state.turns, l.state.count = true, r.Turns, r.Count
	for b := r.Bars; len(b) > 0; b = b[len(id.UUID{}):] {
		l.state.bars = append(l.state.bars, id.Subject{UUID: id.UUID(b[:len(id.UUID{})])})
	}
	return nil
}

// Check returns an error that wraps ErrSnapshot unless all records have come.
func (l *Loader) Check() error {
	if l.missing > 0 || l.table != nil && !l.barred {
		return fmt.Errorf("%w: claims are missing", ErrSnapshot)
	}
	return nil
}

// Replace replaces the book's state by that of a checked loader, which is used up.
func (b *Book) Replace(l *Loader) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state, l.state = l.state, nil
}
