package node

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"facet/internal/id"
)

// metrics are this node's own, in a registry of its own: two nodes of one process
// don't share any.
func (n *Node) metrics() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		groupCollector{n},
	)
	return registry
}

var (
	groupLabels  = []string{"group"}
	descLeader   = prometheus.NewDesc("facet_group_leader", "1 where this node leads the group.", groupLabels, nil)
	descTerm     = prometheus.NewDesc("facet_group_term", "Raft term of the group.", groupLabels, nil)
	descCommit   = prometheus.NewDesc("facet_group_commit_index", "Log index up to which a quorum has the group's log, as known here.", groupLabels, nil)
	descApplied  = prometheus.NewDesc("facet_group_applied_index", "Log index that the group's state here has applied.", groupLabels, nil)
	descEvents   = prometheus.NewDesc("facet_group_events", "Active events of the shard's replica here.", groupLabels, nil)
	descTemplate = prometheus.NewDesc("facet_group_template_bytes", "Memory of the shard's templates here.", groupLabels, nil)
	descNodes    = prometheus.NewDesc("facet_nodes_alive", "Nodes that gossip believes alive.", nil, nil)
)

// groupCollector reads the groups when metrics are asked for: nothing is counted
// in between.
type groupCollector struct{ n *Node }

// Describe sends what Collect will (prometheus.Collector).
func (c groupCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descLeader, descTerm, descCommit, descApplied, descEvents, descTemplate, descNodes} {
		out <- d
	}
}

// Collect sends the groups' present state (prometheus.Collector).
func (c groupCollector) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	groups := c.n.groups
	for _, number := range append([]id.Shard{id.Meta}, groups.numbers()...) {
		group, ok := groups.Group(number)
		if !ok {
			continue
		}
		label := strconv.Itoa(int(number))
		s := group.Status()
		leads := 0.0
		if group.IsLeader() {
			leads = 1
		}
		gauge(descLeader, leads, label)
		gauge(descTerm, float64(s.Term), label)
		gauge(descCommit, float64(s.Commit), label)
		gauge(descApplied, float64(s.Applied), label)
		if machine, ok := groups.Shard(number); ok {
			stats := machine.Shard().Stats()
			gauge(descEvents, float64(stats.Active), label)
			gauge(descTemplate, float64(stats.TemplateBytes), label)
		}
	}
	gauge(descNodes, float64(len(c.n.gossip.Members())))
}
