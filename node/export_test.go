package node

import (
	"errors"

	"facet/internal/id"
	"facet/shard"
	"facet/shard/seal"
)

// ShardHere gives the state of a shard's replica on this node.
func (n *Node) ShardHere(number id.Shard) (*shard.Shard, bool) {
	m, here := n.groups.Shard(number)
	if !here {
		return nil, false
	}
	return m.Shard(), true
}

// DataKey gives a gallery's data key and generation, as the router reads it.
func (n *Node) DataKey(gallery id.Gallery) (*seal.Key, uint32, error) {
	g, known := n.groups.Meta().Gallery(gallery)
	if !known {
		return nil, 0, errors.New("the gallery is not known")
	}
	master, err := n.readMaster()
	if err != nil {
		return nil, 0, err
	}
	raw, err := master.Unwrap(g.WrappedKey, []byte("gallery-data-key"+gallery.String()))
	if err != nil {
		return nil, 0, err
	}
	key, err := seal.NewKey(raw)
	return key, g.Generation, err
}
