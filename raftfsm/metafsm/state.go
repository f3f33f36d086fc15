package metafsm

import (
	"slices"

	"facet/internal/id"
)

// state holds the records. A record never changes. A command replaces it by another, so
// frozen states may share records.
type state struct {
	cluster   *Cluster
	nodes     map[id.Node]*Node
	shards    *ShardMap
	tenants   map[id.Tenant]*tenant
	keys      map[string]*AccessKey
	galleries map[id.Gallery]*Gallery
	// grants of a gallery are in order of shards.
	grants map[id.Gallery][]ShardGrant
	// tags has an entry for each gallery that ever had a tag.
	tags         map[id.Gallery]*TagSet
	applications map[id.Application]*Application
	byMAC        map[[32]byte]id.Application
	byName       map[string]id.Tenant
	// sequence is the last Seq that next returned.
	sequence uint64
	// restoration is the newest one, nil if there was none.
	restoration *Restoration
	// level is the level of the cluster. It is 0 before Found.
	level uint32
}

// tenant is a tenant with its galleries and applications, in order of creation.
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
		tags:         make(map[id.Gallery]*TagSet),
		applications: make(map[id.Application]*Application),
		byMAC:        make(map[[32]byte]id.Application),
		byName:       make(map[string]id.Tenant),
	}
}

// next returns a new Seq.
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

// addGallery adds a gallery of a known tenant.
func (st *state) addGallery(g Gallery) {
	t := st.tenants[g.Tenant]
	st.galleries[g.ID] = &g
	t.galleries = append(t.galleries, g.ID)
	t.byName[g.Name] = g.ID
}

// addApplication adds an application of a known tenant and gallery.
func (st *state) addApplication(a Application) {
	t := st.tenants[a.Tenant]
	st.applications[a.ID] = &a
	st.byMAC[a.KeyMAC] = a.ID
	t.applications = append(t.applications, a.ID)
	if _, ok := t.oldest[a.Gallery]; !ok {
		t.oldest[a.Gallery] = a.ID
	}
}

// taken reports whether an application's id or key is in use.
func (st *state) taken(a Application) bool {
	_, byMAC := st.byMAC[a.KeyMAC]
	return byMAC || st.applications[a.ID] != nil
}

// gallery returns a gallery, or nil if it does not exist or is under deletion.
func (st *state) gallery(g id.Gallery) *Gallery {
	if record := st.galleries[g]; record != nil && !record.Deleting {
		return record
	}
	return nil
}

// current returns a gallery of the given generation with Done, or the status that says why
// there is none.
func (st *state) current(g id.Gallery, generation uint32) (*Gallery, Status) {
	switch record := st.gallery(g); {
	case record == nil:
		return nil, UnknownGallery
	case record.Generation != generation:
		return nil, StaleGeneration
	default:
		return record, Done
	}
}

// removeGallery removes a gallery under deletion.
func (st *state) removeGallery(g *Gallery) {
	t := st.tenants[g.Tenant]
	delete(st.galleries, g.ID)
	delete(t.byName, g.Name)
	t.galleries = slices.DeleteFunc(t.galleries, func(of id.Gallery) bool { return of == g.ID })
}

// removeApplications removes the applications of a gallery for which match is true.
func (st *state) removeApplications(tenant id.Tenant, g id.Gallery, match func(*Application) bool) {
	t := st.tenants[tenant]
	delete(t.oldest, g)
	t.applications = slices.DeleteFunc(t.applications, func(of id.Application) bool {
		a := st.applications[of]
		if a.Gallery == g && match(a) {
			delete(st.applications, of)
			delete(st.byMAC, a.KeyMAC)
			return true
		}
		if _, ok := t.oldest[g]; !ok && a.Gallery == g {
			t.oldest[g] = of // they are in order of creation
		}
		return false
	})
}
