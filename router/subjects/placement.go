package subjects

import (
	"facet/engine/portrait"
	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/router"
	"facet/router/cluster"
)

// Placement is a face to store, and the shard for it.
type Placement struct {
	Gallery     cluster.Gallery
	Application metafsm.Application
	Home        id.Shard
	Subject     id.Subject
	further     bool // a further event of a subject that exists
	Write       router.Write
	Face        portrait.Taken
	Tags        []uint32
	Note        router.Note
	claimed     uint64 // shardfsm.Register.Claimed
	Expires     int64  // in milliseconds since 1970, or 0
}

// Event returns the id of the event.
func (p Placement) Event() id.Event { return p.Gallery.Event(p.Write.Operation, p.Home) }

func eventBytes(p Placement) []byte {
	e := p.Event()
	return e.UUID[:]
}
