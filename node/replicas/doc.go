// Package replicas holds the Raft groups that live on a node: meta always, and the
// shards that meta's map gives to it.
//
// It watches meta's map and the replicas that are out of service. Host opens the replicas
// that the map gives to this node and erases the others. A Repairer rebuilds damaged ones
// from their peers. Node's controller calls both every 500 ms and whenever meta changes. A
// replica whose files fail goes out of service at once.
//
// Four loops stand alone. Warmer opens new templates each second, and Room moves their exact rows
// between memory and disk; both change memory only. Codes keeps the templates' codes on disk for the
// next start. Sizes measures the files every 15 s and changes nothing.
//
// The package also answers what other nodes ask about a replica (Word). It is the only
// part of a node that other parts may import.
package replicas
