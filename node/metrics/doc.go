// Package metrics defines a node's metrics: their names, kinds, labels and
// meanings, in one catalogue from which docs/metrics.md is generated. It owns the
// metrics that are counted as work is done. The node itself reads those that
// describe a present state, when a scrape asks for them.
//
// Labels have bounded values: never a tenant, a gallery, a subject or an address.
// The package imports Prometheus' client and internal/id.
package metrics
