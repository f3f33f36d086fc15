// Package wire defines the messages of the operators' port: types, paths and names. Every part
// of a node and cmd/facet may import it.
package wire
