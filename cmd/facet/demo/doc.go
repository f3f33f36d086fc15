// Package demo owns `facet demo`, the story behind `make demo`: a cluster starts,
// learns a few faces, knows one of them again, loses a node and carries on.
//
// It calls the cluster over HTTPS as any client does, and kills a node as any
// accident does. It may import node/sigv4, node, internal/id and the packages dev
// and config of cmd/facet.
package demo
