// Package cluster makes nodes of machines: it founds a cluster on the first one, has
// others join with a token over the network, and renews and replaces what they trust
// each other by. What a node needs lies in one folder:
//
//	facet.yaml      settings of facet serve
//	data/           the data directory
//	certificates/   the node's own: ca.pem, node.*, server.*, and status.* for commands
//	keys/           cluster.key and gossip.key, the same on all nodes
//	profile.yaml    how commands find and authenticate to the cluster
//	authority/      on the first machine only: ca.key and the administrator's certificate
//
// Private keys of certificates are made where they are used and never travel; the
// shared keys travel over TLS to who holds a token.
//
// It may import the packages admin, authority, config and serve of cmd/facet, node,
// node/cert and internal/id.
package cluster
