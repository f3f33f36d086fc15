// Package dev owns `facet dev`: a cluster of node processes on this machine, in
// one folder, with certificates, keys, ports and a tenant, that can be stopped and
// started again with its data.
//
//	cluster.json     what is kept: ports, shape, the tenant's keys (0600)
//	dev.json         how to reach it; there while it serves (0600)
//	curl.conf        for curl -K: signature, keys, certificate (0600); made once
//	dev.pid          locked while `facet dev` runs
//	certificates/    the authority, keys, and each node's certificates
//	n1.yaml n1.log   a node's configuration and log; n1.log.1 is the log before
//	n1/              a node's data, and node.pid, locked while it runs
//
// A node is an ordinary `facet serve --config n1.yaml`. One that dies stays dead
// until somebody starts it again: dev tells of both, and stops it at the end
// whoever started it.
//
// It may import node and the packages process, config, authority and admin of
// cmd/facet.
package dev
