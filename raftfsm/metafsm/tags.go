package metafsm

import (
	"slices"

	"facet/internal/id"
	"facet/raftfsm/operation"
)

// The bounds of a gallery's tags. Apply decides by them, so other numbers need new
// versions of the commands.
const (
	// TagsMax is the largest number of tags in use.
	TagsMax = 64
	// DormantTagsMax is the largest number of dormant labels; beyond it the one that
	// has been dormant longest goes.
	DormantTagsMax = 1024
)

// Tag is a tag of a gallery. Events hold its identity.
type Tag struct {
	Name string `cbor:"1,keyasint"`
	// Identity is from 1 and never given to another tag of the gallery.
	Identity uint32 `cbor:"2,keyasint"`
}

// tagSet has the tags of a gallery. It does not change: a change makes another.
type tagSet struct {
	Gallery id.Gallery `cbor:"1,keyasint"`
	// Last is the last identity given.
	Last uint32 `cbor:"2,keyasint"`
	// Live are in order of creation or revival, Dormant in order of deletion.
	Live    []Tag `cbor:"3,keyasint,omitempty"`
	Dormant []Tag `cbor:"4,keyasint,omitempty"`
}

func named(tags []Tag, name string) int {
	return slices.IndexFunc(tags, func(t Tag) bool { return t.Name == name })
}

// without copies tags, less the i-th.
func without(tags []Tag, i int) []Tag { return slices.Concat(tags[:i], tags[i+1:]) }

// with copies tags and adds one.
func with(tags []Tag, t Tag) []Tag { return append(slices.Clip(tags), t) }

func (s *tagSet) create(name string) (*tagSet, TagAnswer) {
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

func (s *tagSet) rename(from, to string) (*tagSet, TagAnswer) {
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

func (s *tagSet) delete(name string) (*tagSet, TagAnswer) {
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

// changeTags carries out a change of a gallery's tags once.
func (m *Machine) changeTags(w Write, code byte, gallery id.Gallery, change func(*tagSet) (*tagSet, TagAnswer)) TagAnswer {
	done, status := m.once(w, code, gallery.UUID)
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
		m.ops.Remember(operation.Outcome{Name: w.name(), Kind: code, Scope: gallery.UUID, Number: a.Identity})
	}
	if after != before {
		m.state.tags[gallery] = after
		m.touch()
	}
	return a
}

// tagsOf gives the tags of a gallery, which may be none.
func (st *state) tagsOf(g id.Gallery) *tagSet {
	if s := st.tags[g]; s != nil {
		return s
	}
	return &tagSet{Gallery: g}
}

// valid reports whether names and identities are there once and within bounds.
func (s *tagSet) valid() bool {
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

// Tags gives a gallery's tags in use, in order of creation; none for a gallery that
// is unknown.
func (m *Machine) Tags(g id.Gallery) []Tag {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.Clone(m.state.tagsOf(g).Live)
}

// TagIdentity gives the identity of a tag in use.
func (m *Machine) TagIdentity(g id.Gallery, name string) (identity uint32, ok bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	live := m.state.tagsOf(g).Live
	if i := named(live, name); i >= 0 {
		return live[i].Identity, true
	}
	return 0, false
}

// CreateTag makes a tag of a gallery, or revives the dormant label of that name,
// which keeps its identity. Op names this attempt of the client's and its internal
// retries; a client's request that simply runs again needs another one.
type CreateTag struct {
	Write   Write      `cbor:"1,keyasint"`
	Gallery id.Gallery `cbor:"2,keyasint"`
	Name    string     `cbor:"3,keyasint"`
}

func (c CreateTag) apply(m *Machine) TagAnswer {
	return m.changeTags(c.Write, CreateTagOp.Code, c.Gallery, func(s *tagSet) (*tagSet, TagAnswer) { return s.create(c.Name) })
}

// RenameTag gives a tag another name; its identity stays, and so do the events that
// have it. A dormant label of the new name is forgotten. Op as in CreateTag.
type RenameTag struct {
	Write   Write      `cbor:"1,keyasint"`
	Gallery id.Gallery `cbor:"2,keyasint"`
	From    string     `cbor:"3,keyasint"`
	To      string     `cbor:"4,keyasint"`
}

func (c RenameTag) apply(m *Machine) TagAnswer {
	return m.changeTags(c.Write, RenameTagOp.Code, c.Gallery, func(s *tagSet) (*tagSet, TagAnswer) { return s.rename(c.From, c.To) })
}

// DeleteTag makes a tag dormant: no one can use it, and a tag of the same name that
// is made later is the same again. Op as in CreateTag.
type DeleteTag struct {
	Write   Write      `cbor:"1,keyasint"`
	Gallery id.Gallery `cbor:"2,keyasint"`
	Name    string     `cbor:"3,keyasint"`
}

func (c DeleteTag) apply(m *Machine) TagAnswer {
	return m.changeTags(c.Write, DeleteTagOp.Code, c.Gallery, func(s *tagSet) (*tagSet, TagAnswer) { return s.delete(c.Name) })
}

// TagAnswer answers CreateTag (Done, Replayed, Exists, TagLimit, UnknownGallery,
// Conflict, OpsFull), RenameTag (Done, also to its own name, Replayed, UnknownTag,
// Exists, UnknownGallery, Conflict, OpsFull) and DeleteTag (Done, Replayed,
// UnknownTag, UnknownGallery, Conflict, OpsFull).
type TagAnswer struct {
	Status Status `cbor:"1,keyasint"`
	// Identity is the tag's, for Done and Replayed.
	Identity uint32 `cbor:"2,keyasint"`
}
