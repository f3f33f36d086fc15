package metafsm

import (
	"facet/internal/id"
	"facet/raftfsm/command"
)

const codeCreateTag = 16

// CreateTagOp is the command CreateTag.
var CreateTagOp = command.Op[CreateTag, TagAnswer]{Code: codeCreateTag, Version: 1}

// CreateTag makes a tag of a gallery, or revives the dormant label of that name,
// which keeps its identity. Op names this attempt of the client's and its internal
// retries; a client's request that simply runs again needs another one.
type CreateTag struct {
	Write   Write      `cbor:"1,keyasint"`
	Gallery id.Gallery `cbor:"2,keyasint"`
	Name    string     `cbor:"3,keyasint"`
}

const codeRenameTag = 17

// RenameTagOp is the command RenameTag.
var RenameTagOp = command.Op[RenameTag, TagAnswer]{Code: codeRenameTag, Version: 1}

// RenameTag gives a tag another name; its identity stays, and so do the events that
// have it. A dormant label of the new name is forgotten. Op as in CreateTag.
type RenameTag struct {
	Write   Write      `cbor:"1,keyasint"`
	Gallery id.Gallery `cbor:"2,keyasint"`
	From    string     `cbor:"3,keyasint"`
	To      string     `cbor:"4,keyasint"`
}

const codeDeleteTag = 18

// DeleteTagOp is the command DeleteTag.
var DeleteTagOp = command.Op[DeleteTag, TagAnswer]{Code: codeDeleteTag, Version: 1}

// DeleteTag makes a tag dormant: no one can use it, and a tag of the same name that
// is made later is the same again. Op as in CreateTag.
type DeleteTag struct {
	Write   Write      `cbor:"1,keyasint"`
	Gallery id.Gallery `cbor:"2,keyasint"`
	Name    string     `cbor:"3,keyasint"`
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
