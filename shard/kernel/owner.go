package kernel

import (
	"sync/atomic"

	"facet/internal/id"
)

// Owner is the event whose template lies in a slot. It does not change.
type Owner struct {
	Subject id.Subject
	Event   id.Event
	// Tags names the set of the event's tags.
	Tags uint32
}

// Owners has the owners of a matrix by their numbers, from 1 on. Its methods may be called from any
// goroutine. A number stays with its owner until the slot is erased, and as long as a search runs
// that began before.
type Owners interface {
	// Owner returns the owner of a number.
	Owner(number uint32) *Owner
	// Tags returns the identities of an owner's tags. They must not be changed.
	Tags(o *Owner) []uint32
}

// OwnerList is a list of owners in the Go heap. It only grows, by one goroutine at a time.
type OwnerList struct {
	list atomic.Pointer[[]owned]
}

type owned struct {
	*Owner
	tags []uint32
}

// Add adds an owner with these tags and returns its number. The list keeps both.
func (l *OwnerList) Add(o *Owner, tags []uint32) (number uint32) {
	var list []owned
	if p := l.list.Load(); p != nil {
		list = *p
	}
	// Readers of the old list don't look beyond its length.
	list = append(list, owned{o, tags})
	o.Tags = uint32(len(list))
	l.list.Store(&list)
	return o.Tags
}

// Owner returns the owner of a number.
func (l *OwnerList) Owner(number uint32) *Owner { return (*l.list.Load())[number-1].Owner }

// Tags returns the tags of an owner.
func (l *OwnerList) Tags(o *Owner) []uint32 { return (*l.list.Load())[o.Tags-1].tags }
