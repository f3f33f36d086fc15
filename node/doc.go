// Package node is the process: it wires the parts of a node, starts them in the order of
// one list (open.go) and stops them in the reverse order.
//
// Its controller watches meta's records and gossip. It calls the steps of the parts in a
// fixed order (controller.go), every 500 ms and whenever meta changes. The node also decides
// what other nodes may request (access.go), and hands their requests to its parts (peers.go).
//
// The parts are packages: replicas (the groups that live here), placement (founding, moves,
// membership), keys (certificates and shared keys), checks (comparison of replicas), limits
// (memory, disk, engine queue), admin (the operators' port) and backup. A part may import
// replicas and no other part; none imports node. Below the parts lie wire (messages),
// datadir (the data directory's own record), peer (calls to other nodes) and loop (rounds).
package node
