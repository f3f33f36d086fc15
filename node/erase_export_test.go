package node

import (
	"facet/internal/id"
)

// DataSecret returns the bytes of a gallery's data key.
func (n *Node) DataSecret(gallery id.Gallery) ([]byte, error) {
	g, _ := n.replicas.Meta().Gallery(gallery)
	return n.keys.Master().Unwrap(g.WrappedKey, []byte("gallery-data-key"+gallery.String()))
}
