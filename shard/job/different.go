package job

import (
	"bytes"
	"fmt"

	"facet/internal/codec"
	"facet/internal/id"
	"facet/shard/seal"
)

// DifferentMax is the most items of a batch of the kinds Different and Cases.
const DifferentMax = 10_000

// Put is a change of one item of a batch of the kind Different or Cases.
type Put struct {
	Name  Name
	Kind  Kind
	Index uint32
	// Old is the sealed text that the item has, nil for none, and New the one that it gets. An item without
	// a text is free. An index behind the last item adds one, to a new batch if there is none of the name.
	Old, New []byte
	// Time is now, in milliseconds since 1970.
	Time int64
	// Share is that of the gallery's tenant.
	Share Share
}

// Put replaces an item. Such a batch has no results and never ends. The error wraps ErrConflict if the item
// has another text than c.Old, ErrPlace, ErrFull, ErrJobs or ErrItems.
func (k *Book) Put(c Put) (Progress, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.state
	b := s.batches[c.Name.Batch]
	if b == nil {
		b = newBatch(c.Name, 0, s.sequence)
		b.kind, b.open, b.tenant = c.Kind, true, c.Share.Tenant
	}
	switch {
	case b.name != c.Name || b.kind != c.Kind || c.Kind < Different:
		return Progress{}, ErrConflict
	case c.Index > b.total || c.Index >= DifferentMax || len(c.New) > SealedMax:
		return Progress{}, ErrPlace
	case c.Index < b.total:
		if r, _ := b.records.Get(c.Index); !bytes.Equal(r.Sealed, c.Old) {
			return Progress{}, ErrConflict
		}
	case len(c.Old) > 0:
		return Progress{}, ErrConflict
	default:
		if err := s.extend(b, c.Share); err != nil {
			return Progress{}, err
		}
	}
	s.set(b, Record{Index: c.Index, Sealed: c.New})
	b.touched = max(b.touched, c.Time)
	return b.progress(), nil
}

// extend adds room for an item to a batch, which may be new.
func (s *state) extend(b *batch, of Share) error {
	jobs := 0
	if b.total == 0 {
		jobs = 1
	}
	switch has := s.owned[of.Tenant]; {
	case s.items >= itemsPerShardMax, len(s.batches)+jobs > batchesPerShardMax, s.galleries[b.name.Gallery]+jobs > batchesPerGalleryMax:
		return ErrFull
	case of.Tenant.IsZero():
	case has.Jobs+jobs > int(of.Jobs):
		return ErrJobs
	case has.Items >= int(of.Items):
		return ErrItems
	}
	if b.total++; jobs > 0 {
		s.add(b)
	} else {
		s.items++
		s.own(b.tenant, 0, 1)
	}
	return nil
}

// SealDifferent encrypts two subjects that are different. It isn't bound to a batch or a place in it, so that
// a backup can bring it into another one.
func SealDifferent(key *seal.Key, g id.Gallery, generation uint32, a, b id.Subject) []byte {
	return sealText(key, Name{Gallery: g, Generation: generation}, 0, "different", [2]id.Subject{a, b})
}

// OpenDifferent decrypts two subjects that SealDifferent encrypted. The error wraps seal.ErrOpen or ErrText.
func OpenDifferent(key *seal.Key, g id.Gallery, generation uint32, sealed []byte) (a, b id.Subject, err error) {
	pair, err := openText[[2]id.Subject](key, Name{Gallery: g, Generation: generation}, 0, "different", sealed, SealedMax)
	if err != nil {
		return a, b, fmt.Errorf("two subjects of gallery %s: %w", g, err)
	}
	return pair[0], pair[1], nil
}

// CopiedItem is a pair of different subjects of a gallery, as SealDifferent encrypted it, or a case, as
// SealCase did.
type CopiedItem struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Sealed     []byte     `cbor:"3,keyasint"`
	// Kind is Cases, or 0 for Different.
	Kind Kind `cbor:"4,keyasint,omitempty"`
}

// Copy finds the items of the kinds Different and Cases in a snapshot whose records are not in files.
type Copy struct{ batch batchRecord }

// Next reads the next record. It returns nil unless the record has such an item. The error wraps
// codec.ErrMalformed.
func (c *Copy) Next(m codec.Message) (*CopiedItem, error) {
	switch m.Code {
	case headBatch.Code:
		c.batch = batchRecord{}
		return nil, m.Decode(headBatch, &c.batch)
	case headRecord.Code:
		var r Record
		if err := m.Decode(headRecord, &r); err != nil || c.batch.Kind < Different || len(r.Sealed) == 0 {
			return nil, err
		}
		item := &CopiedItem{Gallery: c.batch.Gallery, Generation: c.batch.Generation, Sealed: r.Sealed}
		if c.batch.Kind == Cases {
			item.Kind = Cases
		}
		return item, nil
	default:
		return nil, nil
	}
}
