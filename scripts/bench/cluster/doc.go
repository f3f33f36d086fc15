// Package cluster starts the nodes that benchmarks measure, each in a process of its
// own, and fills their galleries. It imports cmd/facet/dev, fill, https and machine.
package cluster
