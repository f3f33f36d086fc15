package metafsm

import (
	"slices"

	"facet/internal/id"
	"facet/raftfsm/operation"
)

// The bounds of a gallery's tags. Apply depends on them, so other numbers need new versions
// of the commands.
const (
	// TagsMax is the most tags that may be in use.
	TagsMax = 64
	// DormantTagsMax is the most dormant tags. A further one removes the oldest.
	DormantTagsMax = 1024
)

// Tag is a tag of a gallery. Events hold its identity.
type Tag struct {
	Name string `cbor:"1,keyasint"`
	// Identity counts from 1. No other tag of the gallery ever gets it.
	Identity uint32 `cbor:"2,keyasint"`
}

// TagSet has the tags of a gallery. It never changes: its methods return another.
type TagSet struct {
	Gallery id.Gallery `cbor:"1,keyasint"`
	// Last is the newest identity.
	Last uint32 `cbor:"2,keyasint"`
	// Live are in order of creation or revival, Dormant in order of deletion.
	Live    []Tag `cbor:"3,keyasint,omitempty"`
	Dormant []Tag `cbor:"4,keyasint,omitempty"`
}

func named(tags []Tag, name string) int {
	return slices.IndexFunc(tags, func(t Tag) bool { return t.Name == name })
}

// without returns a copy of tags without the i-th.
func without(tags []Tag, i int) []Tag { return slices.Concat(tags[:i], tags[i+1:]) }

// with returns a copy of tags with t at the end.
func with(tags []Tag, t Tag) []Tag { return append(slices.Clip(tags), t) }

func (s *TagSet) create(name string) (*TagSet, TagAnswer) {
	switch {
	case named(s.Live, name) >= 0:
		return s, TagAnswer{Status: Exists}
	case len(s.Live) >= TagsMax:
		return s, TagAnswer{Status: TagLimit}
	}
	out := *s
	var t Tag
	if i := named(s.Dormant, name); i >= 0 {
		t, out.Dormant = s.Dormant[i], without(s.Dormant, i)
	} else {
		out.Last++
		t = Tag{name, out.Last}
	}
	out.Live = with(s.Live, t)
	return &out, TagAnswer{Done, t.Identity}
}

func (s *TagSet) rename(from, to string) (*TagSet, TagAnswer) {
	i := named(s.Live, from)
	switch {
	case i < 0:
		return s, TagAnswer{Status: UnknownTag}
	case from == to:
		return s, TagAnswer{Done, s.Live[i].Identity}
	case named(s.Live, to) >= 0:
		return s, TagAnswer{Status: Exists}
	}
	out := *s
	if d := named(s.Dormant, to); d >= 0 {
		out.Dormant = without(s.Dormant, d)
	}
	out.Live = slices.Clone(s.Live)
	out.Live[i].Name = to
	return &out, TagAnswer{Done, out.Live[i].Identity}
}

func (s *TagSet) delete(name string) (*TagSet, TagAnswer) {
	i := named(s.Live, name)
	if i < 0 {
		return s, TagAnswer{Status: UnknownTag}
	}
	out := *s
	t := s.Live[i]
	out.Live, out.Dormant = without(s.Live, i), with(s.Dormant, t)
	if n := len(out.Dormant); n > DormantTagsMax {
		out.Dormant = slices.Clone(out.Dormant[n-DormantTagsMax:])
	}
	return &out, TagAnswer{Done, t.Identity}
}

// changeTags changes the tags of a gallery, unless the write was done before.
func (m *Machine) changeTags(w Write, code byte, gallery id.Gallery, change func(*TagSet) (*TagSet, TagAnswer)) TagAnswer {
	var by id.Tenant
	if g := m.state.gallery(gallery); g != nil {
		by = g.Tenant
	}
	done, status := m.once(w, by, code, gallery.UUID)
	switch {
	case status == Replayed:
		return TagAnswer{Replayed, done.Number}
	case status != 0:
		return TagAnswer{Status: status}
	case m.state.gallery(gallery) == nil:
		return TagAnswer{Status: UnknownGallery}
	}
	before := m.state.tagsOf(gallery)
	after, a := change(before)
	if a.Status == Done {
		m.remember(operation.Outcome{Name: w.name(), Kind: code, Scope: gallery.UUID, Number: a.Identity}, by)
	}
	if after != before {
		m.state.tags[gallery] = after
		m.touch()
	}
	return a
}

// tagsOf returns the tags of a gallery, an empty set if it has none.
func (st *state) tagsOf(g id.Gallery) *TagSet {
	if s := st.tags[g]; s != nil {
		return s
	}
	return &TagSet{Gallery: g}
}

// valid reports whether names and identities are unique and within the bounds.
func (s *TagSet) valid() bool {
	names, identities := map[string]bool{}, map[uint32]bool{0: true}
	for _, tags := range [][]Tag{s.Live, s.Dormant} {
		for _, t := range tags {
			if names[t.Name] || identities[t.Identity] || t.Identity > s.Last {
				return false
			}
			names[t.Name], identities[t.Identity] = true, true
		}
	}
	return len(s.Live) <= TagsMax && len(s.Dormant) <= DormantTagsMax
}

// Tags returns a gallery's tags in use, in order of creation. An unknown gallery has none.
func (m *Machine) Tags(g id.Gallery) []Tag {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.Clone(m.state.tagsOf(g).Live)
}

// TagIdentity returns the identity of a tag in use.
func (m *Machine) TagIdentity(g id.Gallery, name string) (identity uint32, ok bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	live := m.state.tagsOf(g).Live
	if i := named(live, name); i >= 0 {
		return live[i].Identity, true
	}
	return 0, false
}

// CreateTag creates a tag of a gallery. A dormant tag with that name comes back with its
// identity. Write.Op names one attempt of the client with its internal retries: a request
// that the client sends again has another Op.
type CreateTag struct {
	Write   Write      `cbor:"1,keyasint"`
	Gallery id.Gallery `cbor:"2,keyasint"`
	Name    string     `cbor:"3,keyasint"`
}

func (c CreateTag) apply(m *Machine) TagAnswer {
	return m.changeTags(c.Write, CreateTagOp.Code, c.Gallery, func(s *TagSet) (*TagSet, TagAnswer) { return s.create(c.Name) })
}

// RenameTag changes the name of a tag. Its identity and the events with the tag stay. A
// dormant tag with the new name is forgotten. For Write.Op see CreateTag.
type RenameTag struct {
	Write   Write      `cbor:"1,keyasint"`
	Gallery id.Gallery `cbor:"2,keyasint"`
	From    string     `cbor:"3,keyasint"`
	To      string     `cbor:"4,keyasint"`
}

func (c RenameTag) apply(m *Machine) TagAnswer {
	return m.changeTags(c.Write, RenameTagOp.Code, c.Gallery, func(s *TagSet) (*TagSet, TagAnswer) { return s.rename(c.From, c.To) })
}

// DeleteTag makes a tag dormant. Nobody can use it until CreateTag brings it back. For
// Write.Op see CreateTag.
type DeleteTag struct {
	Write   Write      `cbor:"1,keyasint"`
	Gallery id.Gallery `cbor:"2,keyasint"`
	Name    string     `cbor:"3,keyasint"`
}

func (c DeleteTag) apply(m *Machine) TagAnswer {
	return m.changeTags(c.Write, DeleteTagOp.Code, c.Gallery, func(s *TagSet) (*TagSet, TagAnswer) { return s.delete(c.Name) })
}

// TagAnswer answers CreateTag, RenameTag and DeleteTag. The status is Done, Replayed,
// UnknownGallery, Conflict, OverChanges, OpsFull, or:
//
//   - CreateTag: Exists or TagLimit.
//   - RenameTag: UnknownTag or Exists. A tag may be renamed to its own name.
//   - DeleteTag: UnknownTag.
type TagAnswer struct {
	Status Status `cbor:"1,keyasint"`
	// Identity is that of the tag, for Done and Replayed.
	Identity uint32 `cbor:"2,keyasint"`
}
