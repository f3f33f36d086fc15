package metafsm

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"maps"
	"slices"

	"facet/internal/codec"
	"facet/raftfsm"
	"facet/raftfsm/operation"
)

// magic is the first bytes of a snapshot of this machine.
var magic = codec.Magic([]byte("facetmta"))

// The records of a snapshot, in this order. Package operation has the codes below 32.
// Codes are stored and never reused.
var (
	headState       = codec.Head{Code: 32, Version: 1}
	headNode        = codec.Head{Code: 33, Version: 1}
	headTenant      = codec.Head{Code: 34, Version: 1}
	headAccessKey   = codec.Head{Code: 35, Version: 1}
	headGallery     = codec.Head{Code: 36, Version: 1}
	headGrants      = codec.Head{Code: 37, Version: 1}
	headApplication = codec.Head{Code: 38, Version: 1}
	headTags        = codec.Head{Code: 39, Version: 1}
)

// ErrSnapshot is returned when the records of a snapshot contradict each other.
var ErrSnapshot = errors.New("metafsm: the snapshot is not consistent")

// stateRecord is the first record.
type stateRecord struct {
	Sequence uint64   `cbor:"1,keyasint"`
	Cluster  *Cluster `cbor:"2,keyasint,omitempty"`
	Shards   ShardMap `cbor:"3,keyasint"`
	// Records is the number of records that follow.
	Records     uint64       `cbor:"4,keyasint"`
	Restoration *Restoration `cbor:"5,keyasint,omitempty"`
	Level       uint32       `cbor:"6,keyasint,omitempty"`
}

// frozen is the machine's state at one index. It shares the records with the machine,
// which never changes one.
type frozen struct {
	index   uint64
	ops     *operation.View
	records []frozenRecord
}

type frozenRecord struct {
	head   codec.Head
	record any
}

// Freeze captures the state for a snapshot. It copies only pointers. The error is nil.
func (m *Machine) Freeze() (raftfsm.Frozen, error) { return m.freeze(), nil }

func (m *Machine) freeze() *frozen {
	m.mu.Lock() // freezing the operations changes them
	defer m.mu.Unlock()
	st := m.state
	head := &stateRecord{Sequence: st.sequence, Cluster: st.cluster, Shards: *st.shards, Restoration: st.restoration, Level: st.level}
	f := &frozen{index: m.index, ops: m.ops.Freeze(), records: []frozenRecord{{headState, head}}}
	for _, n := range sorted(st.nodes, func(a, b *Node) int { return bytes.Compare(a.ID.UUID[:], b.ID.UUID[:]) }) {
		f.add(headNode, n)
	}
	for _, t := range sorted(st.tenants, func(a, b *tenant) int { return cmp.Compare(a.record.Seq, b.record.Seq) }) {
		f.add(headTenant, t.record)
	}
	for _, k := range sorted(st.keys, func(a, b *AccessKey) int { return cmp.Compare(a.ID, b.ID) }) {
		f.add(headAccessKey, k)
	}
	galleries := sorted(st.galleries, bySeq)
	for _, g := range galleries {
		f.add(headGallery, g)
	}
	for _, g := range galleries {
		if of := st.grants[g.ID]; of != nil {
			f.add(headGrants, GrantsOf{g.ID, of})
		}
	}
	for _, g := range galleries {
		if of := st.tags[g.ID]; of != nil {
			f.add(headTags, of)
		}
	}
	for _, a := range sorted(st.applications, func(a, b *Application) int { return cmp.Compare(a.Seq, b.Seq) }) {
		f.add(headApplication, a)
	}
	head.Records = uint64(len(f.records) - 1)
	return f
}

func (f *frozen) add(h codec.Head, record any) {
	f.records = append(f.records, frozenRecord{h, record})
}

// sorted returns the values of a map in order.
func sorted[K comparable, V any](of map[K]V, compare func(a, b V) int) []V {
	return slices.SortedFunc(maps.Values(of), compare)
}

// bySeq orders galleries by creation.
func bySeq(a, b *Gallery) int { return cmp.Compare(a.Seq, b.Seq) }

// WriteTo writes the snapshot.
func (f *frozen) WriteTo(w io.Writer) (int64, error) {
	out := codec.NewWriter(w, magic, f.index)
	f.write(out)
	_, err := out.Close()
	return out.Bytes(), err
}

func (f *frozen) write(out *codec.Writer) {
	f.ops.Write(out)
	for _, r := range f.records {
		out.Record(r.head, r.record)
	}
}

func (f *frozen) Release() { *f = frozen{} }

// Digest returns a hash of the state without the index. Machines that applied the same
// commands have the same digest.
func (m *Machine) Digest() [32]byte {
	out := codec.NewWriter(io.Discard, magic, 0)
	m.freeze().write(out)
	sum, err := out.Close()
	if err != nil {
		panic("bug: nothing can fail in writing to nowhere: " + err.Error())
	}
	return sum
}
