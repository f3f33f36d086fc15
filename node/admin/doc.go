// Package admin is the operators' port.
//
// It watches nothing and runs by itself only to serve: it tells how the cluster is, from
// meta's records, gossip and each node's own account of itself (Status), what it would do
// (Plan), and carries operators' orders out: it changes the states of nodes and the voters
// of shards in meta, access keys by the router, and has the other parts of a node change
// keys, certificates and backups. Who may order what is decided for each request.
package admin
