// Package authority owns the folder with a cluster's certificate authority and
// keys, from which nodes and operators get theirs:
//
//	ca.pem ca.key           the authority; ca.key never leaves this folder
//	cluster.key gossip.key  keys that all nodes share
//	admin/                  ca.pem, admin.pem, admin.key: for the command line
//	NAME/                   ca.pem and the pairs node, server and status (.pem, .key) of one node
//
// It may import node/cert, node and internal/id.
package authority
