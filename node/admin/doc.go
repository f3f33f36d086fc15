// Package admin is the operators' port.
//
// It has no loop. Status describes the cluster by meta's records, gossip and each node's own
// report. Plan lists the moves to come. The orders of operators change the states of nodes
// and the voters of shards in meta, and access keys by the router. Other parts of the node
// carry out the orders about keys, certificates and backups. The port checks the
// certificate of each request.
package admin
