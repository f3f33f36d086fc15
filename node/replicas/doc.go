// Package replicas holds the Raft groups that live on a node: meta always, and the
// shards that meta's map gives to it.
//
// It watches meta's map and the replicas that are out of service. Host opens the replicas
// that the map gives to this node and erases the others; Repair rebuilds damaged ones from
// their peers. Node's controller calls both every 500 ms and whenever meta changes. A
// replica whose files fail is taken out of service at once.
//
// Two loops stand alone: Warmer opens templates as they come, each second and at once
// after the start, and changes what is in memory only; Sizes measures the files every 15
// s and changes nothing.
//
// What a replica is asked by other nodes, and the files of its groups, belong here, too.
// The package is the only part of a node that other parts may import.
package replicas
