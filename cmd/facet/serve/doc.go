// Package serve owns the process of a node: its log, its pid file, the model pack
// and engine that it runs, and how it ends on a signal.
//
// It may import node, engine and the packages process and config of cmd/facet.
package serve
