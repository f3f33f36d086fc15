package backup

import (
	"facet/node/wire"
)

// What operators are told of backups, too.
type (
	Digest   = wire.Digest
	Head     = wire.Head
	Listed   = wire.Listed
	Erasure  = wire.Erasure
	Restored = wire.Restored
)
