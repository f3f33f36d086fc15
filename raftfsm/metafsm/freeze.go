package metafsm

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"maps"
	"slices"

	"facet/internal/codec"
	"facet/internal/id"
	"facet/raftfsm"
	"facet/raftfsm/operation"
)

// magic begins a snapshot of this machine.
var magic = codec.Magic([]byte("facetmta"))

// The records of a snapshot, in this order; those below 32 belong to package
// operation. The numbers are stored and never reused.
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

// ErrSnapshot says that records contradict each other.
var ErrSnapshot = errors.New("metafsm: the snapshot is not consistent")

// stateRecord comes first.
type stateRecord struct {
	Sequence uint64   `cbor:"1,keyasint"`
	Cluster  *Cluster `cbor:"2,keyasint,omitempty"`
	Shards   ShardMap `cbor:"3,keyasint"`
	// Records counts those that follow.
	Records     uint64       `cbor:"4,keyasint"`
	Restoration *Restoration `cbor:"5,keyasint,omitempty"`
	Level       uint32       `cbor:"6,keyasint,omitempty"`
}

type grantsRecord struct {
	Gallery id.Gallery   `cbor:"1,keyasint"`
	Grants  []ShardGrant `cbor:"2,keyasint"`
}

// frozen is the machine's state at one index. Its records are shared with the
// machine, which never changes one.
type frozen struct {
	index        uint64
	ops          *operation.View
	head         stateRecord
	nodes        []*Node
	tenants      []*Tenant
	keys         []*AccessKey
	galleries    []*Gallery
	grants       []grantsRecord
	tags         []*tagSet
	applications []*Application
}

// Freeze captures the state for a snapshot; the error is always nil. It copies
// pointers only: what meta holds is small.
func (m *Machine) Freeze() (raftfsm.Frozen, error) { return m.freeze(), nil }

func (m *Machine) freeze() *frozen {
	m.mu.Lock() // freezing the memory changes it
	defer m.mu.Unlock()
	st := m.state
	f := &frozen{
		index:        m.index,
		ops:          m.ops.Freeze(),
		head:         stateRecord{Sequence: st.sequence, Cluster: st.cluster, Shards: *st.shards, Restoration: st.restoration, Level: st.level},
		nodes:        sorted(st.nodes, func(n *Node) []byte { return n.ID.UUID[:] }),
		keys:         sorted(st.keys, func(k *AccessKey) []byte { return []byte(k.ID) }),
		galleries:    slices.SortedFunc(maps.Values(st.galleries), func(a, b *Gallery) int { return cmp.Compare(a.Seq, b.Seq) }),
		applications: slices.SortedFunc(maps.Values(st.applications), func(a, b *Application) int { return cmp.Compare(a.Seq, b.Seq) }),
	}
	for _, t := range st.tenants {
		f.tenants = append(f.tenants, t.record)
	}
	slices.SortFunc(f.tenants, func(a, b *Tenant) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, g := range f.galleries {
		if of := st.grants[g.ID]; of != nil {
			f.grants = append(f.grants, grantsRecord{g.ID, of})
		}
		if of := st.tags[g.ID]; of != nil {
			f.tags = append(f.tags, of)
		}
	}
	f.head.Records = uint64(len(f.nodes) + len(f.tenants) + len(f.keys) + len(f.galleries) +
		len(f.grants) + len(f.tags) + len(f.applications))
	return f
}

// sorted gives the values of a map in order of a key of theirs.
func sorted[K comparable, V any](of map[K]*V, key func(*V) []byte) []*V {
	return slices.SortedFunc(maps.Values(of), func(a, b *V) int { return bytes.Compare(key(a), key(b)) })
}

// WriteTo streams the state; w need not be buffered.
func (f *frozen) WriteTo(w io.Writer) (int64, error) {
	out := codec.NewWriter(w, magic, f.index)
	f.write(out)
	_, err := out.Close()
	return out.Bytes(), err
}

func (f *frozen) write(out *codec.Writer) {
	f.ops.Write(out)
	out.Record(headState, f.head)
	writeAll(out, headNode, f.nodes)
	writeAll(out, headTenant, f.tenants)
	writeAll(out, headAccessKey, f.keys)
	writeAll(out, headGallery, f.galleries)
	writeAll(out, headGrants, f.grants)
	writeAll(out, headTags, f.tags)
	writeAll(out, headApplication, f.applications)
}

func writeAll[T any](out *codec.Writer, h codec.Head, records []T) {
	for _, r := range records {
		out.Record(h, r)
	}
}

// Release lets go of the state.
func (f *frozen) Release() { *f = frozen{} }

// Digest hashes the state, without the index: machines with equal histories have
// equal digests.
func (m *Machine) Digest() [32]byte {
	out := codec.NewWriter(io.Discard, magic, 0)
	m.freeze().write(out)
	sum, err := out.Close()
	if err != nil {
		panic("bug: nothing can fail in writing to nowhere: " + err.Error())
	}
	return sum
}
