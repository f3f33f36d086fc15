// Package admin is the operators' port.
//
// It has no loop. Status describes the cluster: it reads meta's records and gossip, and asks
// each node for its own report. Plan lists the moves to come.
//
// The port itself carries out the orders about the states of nodes and the voters of shards,
// which are records of meta, and about access keys. Other parts of the node carry out the
// orders about shared keys, certificates and backups. The port checks the certificate of
// each request.
package admin
