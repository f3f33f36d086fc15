// Package wire has the messages of the operators' port, and nothing else: types, paths and
// names. Every part of a node and cmd/facet may import it.
package wire
