// Package metrics says which metrics a node has: their names, kinds, labels and what
// they mean, in one catalogue from which docs/metrics.md is made. It owns the ones
// that are counted as work is done; those that describe a present state are read by
// the node when it is asked. Labels have bounded values: never a tenant, a gallery, a
// subject or an address. It imports Prometheus' client and internal/id.
package metrics
