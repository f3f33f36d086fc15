package metafsm

import (
	"crypto/sha256"
	"encoding/hex"

	"facet/internal/codec"
)

// ETag returns a hash of the gallery's settings, 32 hexadecimal digits: of everything that its
// tenant can set, and of nothing else. State machines compare it, so the settings must encode
// alike in all versions.
func (g Gallery) ETag() string {
	g.ID, g.Tenant = Gallery{}.ID, Gallery{}.Tenant
	g.Shards, g.Generation, g.Epoch, g.Settled, g.Deleting = 0, 0, 0, 0, false
	g.WrappedKey, g.IDKey, g.Created, g.Seq = nil, [32]byte{}, 0, 0
	return hashOf(g)
}

// ETag returns a hash of the application's settings, as that of a Gallery.
func (a Application) ETag() string {
	a.ID, a.Tenant, a.Gallery = Application{}.ID, Application{}.Tenant, Application{}.Gallery
	a.KeyMAC, a.SealedKey, a.Created, a.Seq = [32]byte{}, nil, 0, 0
	return hashOf(a)
}

func hashOf(settings any) string {
	sum := sha256.Sum256(codec.Encode(codec.Head{}, settings))
	return hex.EncodeToString(sum[:16])
}
