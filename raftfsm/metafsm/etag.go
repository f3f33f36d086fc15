package metafsm

import (
	"crypto/sha256"
	"encoding/hex"

	"facet/internal/codec"
)

// ETag returns a hash of the gallery's settings, 32 hexadecimal digits. State machines compare it, so
// the settings must encode alike in all versions.
func (g Gallery) ETag() string { return hashOf(g.Gallery) }

// ETag returns a hash of the application's settings, as that of a Gallery.
func (a Application) ETag() string { return hashOf(a.Application) }

func hashOf(settings any) string {
	sum := sha256.Sum256(codec.Encode(codec.Head{}, settings))
	return hex.EncodeToString(sum[:16])
}
