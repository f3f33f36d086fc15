// Package serve runs the process of a node: its log, its pid file, the model pack
// and engine that it uses, and its end on a signal.
//
// It may import node, engine and the packages models, process and config
// of cmd/facet.
package serve
