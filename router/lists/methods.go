package lists

import (
	"facet/internal/id"
	"facet/router"
	"facet/shard"
)

// listQuery asks one shard for a page of its list of a gallery.
type listQuery struct {
	Gallery    id.Gallery   `cbor:"1,keyasint"`
	Generation uint32       `cbor:"2,keyasint"`
	Start      int          `cbor:"3,keyasint"`
	Length     int          `cbor:"4,keyasint"`
	Order      router.Order `cbor:"5,keyasint"`
	Epoch      uint32       `cbor:"6,keyasint"`
	// After, if set, is where the page starts instead of Start.
	After *shard.Position `cbor:"7,keyasint,omitempty"`
}

// listAnswer is a page of one shard's list.
type listAnswer struct {
	Entries   []shard.Entry `cbor:"1,keyasint"`
	Total     int           `cbor:"2,keyasint"`
	Sequences []uint64      `cbor:"3,keyasint,omitempty"`
	// Noted has the notes of the active entries' subjects. It is left out if none has one.
	Noted   []shard.Active `cbor:"4,keyasint,omitempty"`
	Expires []int64        `cbor:"5,keyasint,omitempty"`
}

func (q listQuery) read(s *shard.Shard) (listAnswer, error) {
	if err := s.CheckEpoch(q.Gallery, q.Generation, q.Epoch); err != nil {
		return listAnswer{}, err
	}
	var p shard.Page
	if q.After != nil {
		p = s.ListEventsAfter(q.Gallery, *q.After, q.Length, shard.Order(q.Order))
	} else {
		p = s.ListEvents(q.Gallery, q.Start, q.Length, shard.Order(q.Order))
	}
	return answerOf(s, q.Gallery, q.Generation, p)
}

// answerOf returns a page with the notes of its subjects.
func answerOf(s *shard.Shard, g id.Gallery, generation uint32, p shard.Page) (listAnswer, error) {
	a := listAnswer{Entries: p.Entries, Total: p.Total, Sequences: p.Sequences, Expires: p.Expires}
	subjects := make([]id.Subject, len(p.Entries))
	for i, e := range p.Entries {
		if !e.Deleted {
			subjects[i] = e.Subject
		}
	}
	var err error
	a.Noted, err = s.NotesOf(g, generation, subjects)
	return a, err
}
