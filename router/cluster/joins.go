package cluster

import (
	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/router/calls"
)

// Joins reports whether a peer's request is part of joining the cluster. Until the
// cluster has a record of the node, the node may only ask for the index of meta and
// propose its own record.
func Joins(node id.Node, name string, body []byte) bool {
	switch name {
	case metaIndex.Name:
		e, err := calls.Open[struct{}](body)
		return err == nil && e.Group == id.Meta
	case metaPropose.Name:
		e, err := calls.Open[[]byte](body)
		if err != nil || e.Group != id.Meta {
			return false
		}
		put, err := metafsm.PutNodeOp.Decode(e.Query)
		if err != nil {
			return false
		}
		of, err := put.Node.Member.Node()
		return err == nil && put.Node.ID == node && of == node
	default:
		return false
	}
}
