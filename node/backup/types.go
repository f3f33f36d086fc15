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
	// Erasure is a subject that is not to come back.
	Erasure = wire.Erasure
	// Restored says what was restored.
	Restored = wire.Restored
)
