package router

import (
	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/router/calls"
)

// Joins reports whether a request of a peer is one that a node without a record needs to
// get one: the question how far meta is, or the proposal of that node's own record.
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
