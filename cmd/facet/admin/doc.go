// Package admin is the command line's side of the admin port. It calls any node
// that answers, with the administrator's certificate, and prints the answer.
//
// It may import node (for the port's paths and types), node/cert and the other
// packages of cmd/facet below it: authority, table.
package admin
