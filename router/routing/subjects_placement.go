package routing

import (
	"facet/engine/portrait"
	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/router"
	"facet/router/cluster"
)

func eventBytes(p placement) []byte {
	e := p.event()
	return e.UUID[:]
}

// placement is a face to store, and the shard for it.
type placement struct {
	gallery     cluster.Gallery
	application metafsm.Application
	home        id.Shard
	subject     id.Subject
	further     bool // a further event of a subject that exists
	write       router.Write
	face        portrait.Taken
	tags        []uint32
	note        router.Note
	claimed     uint64 // shardfsm.Register.Claimed
	expires     int64  // in milliseconds since 1970, or 0
}

func (p placement) event() id.Event { return p.gallery.Event(p.write.Operation, p.home) }
