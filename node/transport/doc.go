// Package transport owns the one port between nodes: mutual TLS, a first frame
// that says what a stream is for, and the internal requests.
//
//	Mux      accepts, checks and hands each stream to its registration:
//	         a Raft group ('R'), internal requests ('P') or gossip ('G')
//	Server   answers internal requests
//	Client   sends them over kept-alive connections
//	Route    the way to a node whose link is cut: through a relay
//	Network  the seam to the operating system; memnet is the one for tests
//
// The package may import node/cert, internal/id, golang.org/x/sync and the standard library.
package transport
