// Package dev is `facet dev`: a cluster of node processes on this machine, with
// certificates, keys, ports and a tenant, in one folder. It can be stopped and
// started again with its data.
//
//	cluster.json     the lasting state: ports, shape, the tenant's keys (0600)
//	dev.json         how to reach it; exists while it runs (0600)
//	curl.conf        for curl -K: signature, keys, certificate (0600); written once
//	dev.pid          locked while `facet dev` runs
//	certificates/    the authority, keys, and each node's certificates
//	n1.yaml n1.log   a node's configuration and log; n1.log.1 is the log before
//	n1/              a node's data, and node.pid, locked while it runs
//
// A node is an ordinary `facet serve --config n1.yaml`. A node that dies stays down
// until a person or program starts it again. dev reports both, and at the end it
// stops the nodes that others have started too.
//
// It may import node and the packages process, config, authority and admin of
// cmd/facet.
package dev
