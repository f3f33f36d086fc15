package metafsm

import (
	"slices"

	"facet/internal/id"
)

// state holds the records. A record does not change once it is in: a change puts
// another in its place, so that frozen states may share it.
type state struct {
	cluster   *Cluster
	nodes     map[id.Node]*Node
	shards    *ShardMap
	tenants   map[id.Tenant]*tenant
	keys      map[string]*AccessKey
	galleries map[id.Gallery]*Gallery
	// grants of a gallery are in order of shards.
	grants       map[id.Gallery][]ShardGrant
	applications map[id.Application]*Application
	byMAC        map[[32]byte]id.Application
	byName       map[string]id.Tenant
	// sequence is the last Seq given.
	sequence uint64
}

// tenant is a tenant with what belongs to it, in order of creation.
type tenant struct {
	record       *Tenant
	galleries    []id.Gallery
	applications []id.Application
	byName       map[string]id.Gallery
	// oldest is the first application of each gallery.
	oldest map[id.Gallery]id.Application
}

func newState() *state {
	return &state{
		nodes:        make(map[id.Node]*Node),
		shards:       new(ShardMap),
		tenants:      make(map[id.Tenant]*tenant),
		keys:         make(map[string]*AccessKey),
		galleries:    make(map[id.Gallery]*Gallery),
		grants:       make(map[id.Gallery][]ShardGrant),
		applications: make(map[id.Application]*Application),
		byMAC:        make(map[[32]byte]id.Application),
		byName:       make(map[string]id.Tenant),
	}
}

// next gives a Seq.
func (st *state) next() uint64 {
	st.sequence++
	return st.sequence
}

func (st *state) addTenant(t Tenant) {
	st.tenants[t.ID] = &tenant{
		record: &t,
		byName: make(map[string]id.Gallery),
		oldest: make(map[id.Gallery]id.Application),
	}
	st.byName[t.Name] = t.ID
}

// addGallery adds a gallery whose tenant is there.
func (st *state) addGallery(g Gallery) {
	t := st.tenants[g.Tenant]
	st.galleries[g.ID] = &g
	t.galleries = append(t.galleries, g.ID)
	t.byName[g.Name] = g.ID
}

// addApplication adds an application whose tenant and gallery are there.
func (st *state) addApplication(a Application) {
	t := st.tenants[a.Tenant]
	st.applications[a.ID] = &a
	st.byMAC[a.KeyMAC] = a.ID
	t.applications = append(t.applications, a.ID)
	if _, ok := t.oldest[a.Gallery]; !ok {
		t.oldest[a.Gallery] = a.ID
	}
}

// taken tells whether an application's id or key is in use.
func (st *state) taken(a Application) bool {
	_, byMAC := st.byMAC[a.KeyMAC]
	return byMAC || st.applications[a.ID] != nil
}

// grant raises the total of a shard by at most want, so that the totals of all
// shards are not more than the gallery's size, and gives it.
func (st *state) grant(g *Gallery, shard id.Shard, have, want uint32) (total uint32, changed bool) {
	grants := st.grants[g.ID]
	var sum uint64
	for _, of := range grants {
		sum += uint64(of.Total)
		if of.Shard == shard {
			total = of.Total
		}
	}
	free := uint64(g.Size) - min(sum, uint64(g.Size))
	more := uint32(min(uint64(want), free))
	if total > have || more == 0 {
		return total, false
	}
	total += more
	st.grants[g.ID] = withTotal(grants, ShardGrant{shard, total})
	return total, true
}

// withTotal copies grants with one total set.
func withTotal(grants []ShardGrant, to ShardGrant) []ShardGrant {
	out := slices.Clone(grants)
	i, ok := slices.BinarySearchFunc(out, to.Shard, func(of ShardGrant, s id.Shard) int { return int(of.Shard) - int(s) })
	if !ok {
		return slices.Insert(out, i, to)
	}
	out[i] = to
	return out
}
