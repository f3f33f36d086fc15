// Package cert is the cluster's own certificate authority: it issues the
// certificates of nodes, of the public HTTPS port and of the administrator,
// keeps them in files, renews them, and makes the TLS configurations that
// accept nobody else.
//
// A certificate says what its holder is in a URI name (RFC 5280, §4.2.1.6):
//
//	facet://<authority>/node/<id>      may speak on the port between nodes
//	facet://<authority>/admin/<name>   may call the admin port
//
// A certificate of the public port has host names only, so that it opens
// neither of the two. <authority> is the name of the authority.
//
// The package may import internal/id and the standard library.
package cert
