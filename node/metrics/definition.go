package metrics

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Kind is the kind of a metric.
type Kind string

// The kinds.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
)

// Definition describes one metric. It is never changed.
type Definition struct {
	Name    string
	Kind    Kind
	Help    string // one sentence
	Labels  []string
	Buckets []float64 // upper bounds in seconds; histograms only

	desc *prometheus.Desc
}

// Desc returns the definition in the form of Prometheus' client.
func (d *Definition) Desc() *prometheus.Desc { return d.desc }

// Value returns a metric with a value that was read just now. labels has a value
// for each of Labels.
func (d *Definition) Value(v float64, labels ...string) prometheus.Metric {
	kind := prometheus.GaugeValue
	if d.Kind == Counter {
		kind = prometheus.CounterValue
	}
	return prometheus.MustNewConstMetric(d.desc, kind, v, labels...)
}

// Section is a part of the catalogue. It is filled while the package's variables
// are initialised and never changed after that.
type Section struct {
	Title   string
	Metrics []*Definition
}

func (s *Section) counter(name, help string, labels ...string) *Definition {
	return s.define(Definition{Name: name, Kind: Counter, Help: help, Labels: labels})
}

func (s *Section) gauge(name, help string, labels ...string) *Definition {
	return s.define(Definition{Name: name, Kind: Gauge, Help: help, Labels: labels})
}

func (s *Section) histogram(buckets []float64, name, help string, labels ...string) *Definition {
	return s.define(Definition{Name: name, Kind: Histogram, Help: help, Labels: labels, Buckets: buckets})
}

func (s *Section) define(d Definition) *Definition {
	d.desc = prometheus.NewDesc(d.Name, d.Help, d.Labels, nil)
	s.Metrics = append(s.Metrics, &d)
	return &d
}

func (d *Definition) counterVec() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: d.Name, Help: d.Help}, d.Labels)
}

func (d *Definition) histogramVec() *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: d.Name, Help: d.Help, Buckets: d.Buckets}, d.Labels)
}

// Names returns the names under which d's values appear. A histogram has three.
func (d *Definition) Names() []string {
	if d.Kind != Histogram {
		return []string{d.Name}
	}
	return []string{d.Name + "_bucket", d.Name + "_sum", d.Name + "_count"}
}

// Markdown returns the catalogue and Process as a page for people.
func Markdown() string {
	var b strings.Builder
	b.WriteString(pageHead)
	for _, s := range append(slices.Clip(Catalogue), Process) {
		fmt.Fprintf(&b, "\n## %s\n\n| metric | kind | labels | meaning |\n|---|---|---|---|\n", s.Title)
		for _, d := range s.Metrics {
			labels := make([]string, len(d.Labels))
			for i, l := range d.Labels {
				labels[i] = "`" + l + "`"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", d.Name, d.Kind, strings.Join(labels, ", "), d.Help)
		}
	}
	return b.String()
}

// Find returns the definition whose values appear under a name.
func Find(name string) (d *Definition, ok bool) {
	for _, s := range Catalogue {
		for _, d := range s.Metrics {
			if slices.Contains(d.Names(), name) {
				return d, true
			}
		}
	}
	return nil, false
}

const pageHead = `# Metrics

For people who write alerts and dashboards. Every node serves its own metrics for Prometheus at ` + "`/metrics`" + ` of its admin port, without a
certificate. [Alerts](../deploy/prometheus) and two [dashboards](../deploy/grafana) are
[ready to install](operations.md#prometheus-and-grafana).

- Values are of one node; sum or compare nodes in queries: ` + "`sum by (group) (facet_group_leader)`" + ` is 1 for every group of a
  healthy cluster.
- Under [Cluster](#cluster), each node counts all nodes, shards and replicas: take ` + "`max`" + `.
- ` + "`group`" + ` is 0 for [meta](glossary.md#meta), else the [shard](glossary.md#shard)'s number.
- ` + "`…_timestamp_seconds`" + ` count from 1970; 0 is none.
- Values read from the disk are at most 15 seconds old.
- No label holds a tenant, gallery, subject or address.

` + "`go test ./node/metrics -run Page -rewrite`" + ` writes this page.
`
