// Package cert is the cluster's own certificate authority. It issues the
// certificates of nodes, of the public HTTPS port and of the administrator. It
// keeps them in files, renews them, and returns the TLS configurations that
// accept only their holders.
//
// A URI name in a certificate states the role of its holder (RFC 5280, §4.2.1.6):
//
//	facet://<authority>/node/<id>      may speak on the port between nodes
//	facet://<authority>/admin/<name>   may call the admin port
//	facet://<authority>/status/<id>    may read from the admin port
//
// A certificate of the public port has host names only, so it opens neither of
// the two ports. <authority> is the name of the authority.
//
// The package may import internal/id and the standard library.
package cert
