// Package cluster turns machines into nodes. It founds a cluster on the first one,
// lets others join with a token over the network, and renews and replaces their
// certificates and keys. The files of a node are in one folder:
//
//	facet.yaml      settings of facet serve
//	data/           the data directory
//	certificates/   the node's own: ca.pem, node.*, server.*, and status.* for commands
//	keys/           cluster.key and gossip.key, the same on all nodes
//	profile.yaml    how commands find and authenticate to the cluster
//	admin/          on the first machine, and where "facet cluster admin" ran: the administrator's certificate
//
// The folder with the authority, DIR-authority, lies beside it on the first machine.
// Private keys of certificates are created where they are used and never leave the
// machine. The shared keys are sent over TLS to a machine that has a token.
//
// It may import the packages admin, authority, config and serve of cmd/facet, node,
// node/cert and internal/id.
package cluster
