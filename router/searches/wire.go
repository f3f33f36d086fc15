package searches

import (
	"facet/internal/id"
	"facet/router"
	"facet/shard"
)

// matchesQuery asks one shard for its part of a page.
type matchesQuery struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Epoch      uint32     `cbor:"3,keyasint,omitempty"` // as in SearchQuery
	Probe      []float32  `cbor:"4,keyasint"`
	Model      id.Model   `cbor:"5,keyasint"` // of the probe
	Threshold  int        `cbor:"6,keyasint"`
	Limit      int        `cbor:"7,keyasint"`
	After      id.Subject `cbor:"8,keyasint,omitzero"`
	Means      bool       `cbor:"9,keyasint,omitempty"` // as in SearchQuery
	// Receipt asks for a ShardReceipt.
	Receipt bool `cbor:"10,keyasint,omitempty"`
}

type matchesAnswer struct {
	Matches []shard.Match `cbor:"1,keyasint,omitempty"`
	Next    id.Subject    `cbor:"2,keyasint,omitzero"`
	// Noted has the notes of the subjects of Matches, or nothing if none has one.
	Noted []shard.Active `cbor:"3,keyasint,omitempty"`
	// Receipt states which events were searched for the subjects of this page.
	Receipt *router.ShardReceipt `cbor:"4,keyasint,omitempty"`
}

// NotedHit is a hit of a shard. The first one of a subject has the subject's note, if there is one and
// the search asks for notes.
type NotedHit struct {
	shard.Hit
	Noted shard.Active `cbor:",omitzero"`
	// Floor, unless 0, says that this is no hit: the shard may have left out hits of lower scores,
	// because the search shares a limit.
	Floor int `cbor:",omitempty"`
	// Receipt, unless nil, says that this is no hit but what the shard states about the search.
	Receipt *router.ShardReceipt `cbor:",omitempty"`
}

// SearchQuery asks one shard for its best matches.
type SearchQuery struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Probe      []float32  `cbor:"3,keyasint"`
	Threshold  int        `cbor:"4,keyasint"`
	Limit      int        `cbor:"5,keyasint"`
	Tags       []uint32   `cbor:"6,keyasint,omitempty"`
	BySubject  bool       `cbor:"7,keyasint,omitempty"`
	// Epoch is the epoch of the list of shards that the caller uses.
	Epoch uint32 `cbor:"8,keyasint,omitempty"`
	// Pending selects events that are not active yet (see activateUnlessKnown).
	Pending bool `cbor:"9,keyasint,omitempty"`
	// Model is the model that made the probe.
	Model id.Model `cbor:"10,keyasint"`
	// Notes asks for notes.
	Notes bool `cbor:"11,keyasint,omitempty"`
	// Means asks for the subjects' own templates.
	Means bool `cbor:"12,keyasint,omitempty"`
	// Share, unless zero, names the search: shards of one node that search for it share a limit, and
	// may leave out hits below it.
	Share id.UUID `cbor:"13,keyasint,omitzero"`
	// Receipt asks for a ShardReceipt behind the hits.
	Receipt bool `cbor:"14,keyasint,omitempty"`
}
