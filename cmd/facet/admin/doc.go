// Package admin owns the command line's side of the admin port: it asks any node
// that answers, with the administrator's certificate, and shows what it learnt.
//
// It may import node (for the port's paths and types), node/cert and the other
// packages of cmd/facet below it: authority.
package admin
