// Package authority manages the folder with a cluster's certificate authority and
// keys. Nodes and operators get their certificates and keys from it:
//
//	ca.pem ca.key           the authority; ca.key is encrypted with a passphrase (age)
//	cluster.key gossip.key  keys that all nodes share
//	admin/                  ca.pem, admin.pem, admin.key: for the command line
//	NAME/                   ca.pem and the pairs node, server and status (.pem, .key) of one node
//
// Each command that needs the authority opens it by an Access.
//
// It may import node/cert, node/datadir, node and internal/id.
package authority
