// Package node is the process: it opens the data directory, the ports, the Raft
// groups that live here and the parts that serve requests, and closes them in the
// opposite order.
//
// It may import everything below cmd. Its sub-packages: httpapi (the public
// interface), sigv4 (request signatures), transport (the port between nodes),
// membership (gossip), cert (certificates), nodetest (whole clusters for tests).
package node
