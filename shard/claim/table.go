package claim

import (
	"bytes"
	"slices"
	"sort"

	"facet/internal/id"
	"facet/shard"
)

// A table has the claims of one gallery, sorted by name, in leaves:
//
//	leaves  ┌────┬────┬────┐
//	        └─┬──┴─┬──┴─┬──┘
//	          ▼    ▼    ▼
//	        28 bytes a claim, without a pointer and without spare room
//
// A leaf never changes: a change makes another leaf, at the cost of copying at most 8 KiB. So a view
// shares all leaves, and a leaf takes no more memory than its claims (TestClaimTakesLittleMemory).
const (
	// leafMax is the most claims of a leaf: 8 KiB less 16 bytes, so that the allocator wastes little.
	leafMax = 292
	// leafMin is the size of two neighbours that become one.
	leafMin = leafMax / 2
)

// Holder is the subject that has claimed a name.
type Holder struct {
	Subject id.Subject `cbor:"1,keyasint,omitzero"`
	// Turn is the number of the claim among all of this shard, modulo 65536. Who takes a claim away
	// names it, so that a claim that was made again meanwhile stays.
	Turn uint16 `cbor:"2,keyasint,omitempty"`
}

// entry is one claim, of 28 bytes.
type entry struct {
	name   shard.ExternalName
	holder Holder
}

type table struct {
	generation uint32
	leaves     [][]entry
	n          int
}

// leaf returns the index of the leaf that has or would have a name.
func (t *table) leaf(name shard.ExternalName) int {
	i := sort.Search(len(t.leaves), func(i int) bool { return bytes.Compare(t.leaves[i][0].name[:], name[:]) > 0 })
	return max(i-1, 0)
}

// find returns the leaf and the index of a name, and whether it is there.
func (t *table) find(name shard.ExternalName) (leaf, at int, ok bool) {
	leaf = t.leaf(name)
	if len(t.leaves) == 0 {
		return 0, 0, false
	}
	at, ok = slices.BinarySearchFunc(t.leaves[leaf], name, func(e entry, name shard.ExternalName) int {
		return bytes.Compare(e.name[:], name[:])
	})
	return leaf, at, ok
}

// holder returns the holder of a name, or the zero Holder.
func (t *table) holder(name shard.ExternalName) Holder {
	if leaf, at, ok := t.find(name); ok {
		return t.leaves[leaf][at].holder
	}
	return Holder{}
}

// set gives a name a holder. The zero Holder removes the claim.
func (t *table) set(name shard.ExternalName, h Holder) {
	leaf, at, ok := t.find(name)
	switch {
	case h.Subject.IsZero() && !ok:
	case h.Subject.IsZero():
		t.n--
		old := t.leaves[leaf]
		t.replace(leaf, slices.Concat(old[:at], old[at+1:]))
	case ok:
		fresh := slices.Clone(t.leaves[leaf])
		fresh[at].holder = h
		t.leaves[leaf] = fresh
	case len(t.leaves) == 0:
		t.n++
		t.leaves = [][]entry{{{name, h}}}
	default:
		t.n++
		old := t.leaves[leaf]
		fresh := make([]entry, len(old)+1)
		copy(fresh, old[:at])
		fresh[at] = entry{name, h}
		copy(fresh[at+1:], old[at:])
		t.replace(leaf, fresh)
	}
}

// replace replaces a leaf, splits one that is too large, and joins two that are small.
func (t *table) replace(i int, fresh []entry) {
	switch {
	case len(fresh) == 0:
		t.leaves = slices.Delete(t.leaves, i, i+1)
	case len(fresh) > leafMax:
		t.leaves[i] = slices.Clone(fresh[:len(fresh)/2])
		t.leaves = slices.Insert(t.leaves, i+1, slices.Clone(fresh[len(fresh)/2:]))
	case i+1 < len(t.leaves) && len(fresh)+len(t.leaves[i+1]) <= leafMin:
		t.leaves[i] = slices.Concat(fresh, t.leaves[i+1])
		t.leaves = slices.Delete(t.leaves, i+1, i+2)
	default:
		t.leaves[i] = fresh
	}
}

// after returns at most n claims that follow a name.
func (t *table) after(name shard.ExternalName, n int) (list []Claim) {
	for i := t.leaf(name); i < len(t.leaves) && len(list) < n; i++ {
		for _, e := range t.leaves[i] {
			if len(list) < n && bytes.Compare(e.name[:], name[:]) > 0 {
				list = append(list, Claim{e.name, e.holder})
			}
		}
	}
	return list
}
