package backup

import (
	"facet/node/wire"
)

type (
	// Digest is a SHA-256.
	Digest = wire.Digest
	// Head is the part of a manifest that can be read without a key.
	Head = wire.Head
	// Listed is a backup in a folder.
	Listed = wire.Listed
	// Erasure names a subject that a restoration leaves out.
	Erasure = wire.Erasure
	// Restored reports what a restoration did.
	Restored = wire.Restored
)
