package doctor

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"facet/cmd/facet/admin"
	packs "facet/cmd/facet/models"
	"facet/node/clock"
	"facet/node/wire"
	"facet/raftfsm/metafsm"
)

const (
	scrapeTimeout  = 10 * time.Second
	scrapeBytesMax = 16 << 20
	// filesShare is the part of the open files that is a warning, in per cent.
	filesShare = 80
	look       = "facet status shows where, docs/operations.md what to do"
)

// cluster is the state of the cluster as its running nodes report it.
type cluster struct {
	status wire.Status
	nodes  []readings
}

// readings are the metrics of one node.
type readings struct {
	name   string
	values map[string]float64 // sums over the labels
	off    time.Duration      // its clock minus this machine's
}

// cluster checks the running cluster.
func (x *examination) cluster(ctx context.Context) {
	s, err := x.Client.Status(ctx)
	if _, silent := errors.AsType[*admin.UnreachableError](err); silent && x.node == 0 && x.Settings != nil {
		x.ok("cluster", "the node does not run: the checks of the running cluster are left out")
		return
	}
	if err != nil {
		x.problem("cluster", "start the nodes, or name another profile", "%v", err)
		return
	}
	x.live = &cluster{status: s}
	switch admin.HealthOf(s) {
	case admin.Broken:
		x.problem("cluster", look, "a part of the data can't be read or written: %s", strings.Join(s.Warnings, "; "))
	case admin.Warned:
		for _, w := range s.Warnings {
			x.warn("cluster", look, "%s", w)
		}
		if len(s.Warnings) == 0 {
			x.warn("cluster", look, "a part of a node fails")
		}
	default:
		x.ok("cluster", "%d nodes, %d shards × %d, no warnings", len(s.Nodes), s.Shards, s.Replicas)
	}
	if n := len(s.Nodes); s.Founded && n < s.Replicas {
		x.warn("replicas", "add nodes (facet cluster invite)", "each shard should have %d replicas, and there are %d nodes", s.Replicas, n)
	}
	x.versions(s)
	for _, a := range x.Client.Addresses() {
		r, err := x.scrape(ctx, a)
		if err != nil {
			x.warn("metrics", "look at that node: is it running, and is its admin-address reached from here?", "%v", err)
			continue
		}
		x.live.nodes = append(x.live.nodes, r)
		x.running(r)
	}
	x.clocks()
}

// versions checks that all nodes run one release and that this machine has the cluster's pack.
func (x *examination) versions(s wire.Status) {
	var all []string
	for _, n := range s.Nodes {
		if n.Version != "" {
			all = append(all, n.Version)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	switch {
	case len(all) > 1:
		x.warn("versions", "finish the upgrade (docs/upgrade.md)", "nodes run %s", strings.Join(all, " and "))
	case len(all) == 1 && all[0] != wire.Version:
		x.warn("versions", "upgrade the nodes, or use their facet", "nodes run %s, and this is %s", all[0], wire.Version)
	default:
		x.ok("versions", "all nodes run %s; level %d of %d", wire.Version, s.Level, metafsm.Level)
	}
	if s.Level > metafsm.Level {
		x.problem("versions", "use the nodes' facet", "the cluster has level %d, and this facet knows %d", s.Level, metafsm.Level)
	}
	if x.Settings == nil {
		return
	}
	if _, err := packs.Choose(x.Settings.Models, s.Pack); err != nil {
		x.problem("models", "copy the pack from another node", "%v", err)
	}
}

// scrape reads the metrics of a node.
func (x *examination) scrape(ctx context.Context, address string) (r readings, err error) {
	ctx, cancel := context.WithTimeout(ctx, scrapeTimeout)
	defer cancel()
	begin := time.Now()
	text, err := x.Client.Fetch(ctx, address, wire.PathMetrics, scrapeBytesMax)
	if err != nil {
		return r, err
	}
	end := time.Now()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return r, err
	}
	r = readings{name: address, values: map[string]float64{}}
	for name, f := range families {
		for _, m := range f.GetMetric() {
			r.values[name] += m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	if at, ok := r.values["facet_clock_seconds"]; ok {
		r.off = time.UnixMicro(int64(at * 1e6)).Sub(begin.Add(end.Sub(begin) / 2))
	}
	return r, nil
}

// running checks what a running node has used up.
func (x *examination) running(r readings) {
	if open, most := r.values["process_open_fds"], r.values["process_max_fds"]; most > 0 && open > most*filesShare/100 {
		x.warn("open files", "raise LimitNOFILE of its unit", "%s has %.0f of %.0f files and connections open", r.name, open, most)
	}
	if r.values["facet_clock_agrees"] == 0 {
		x.warn("clocks", "repair its time service", "the clock of %s agrees with no majority of the nodes", r.name)
	}
}

// clocks compares this machine's clock with those of the nodes.
func (x *examination) clocks() {
	if len(x.live.nodes) == 0 {
		return
	}
	worst := slices.MaxFunc(x.live.nodes, func(a, b readings) int { return int(a.off.Abs() - b.off.Abs()) })
	off := worst.off.Round(time.Millisecond)
	if off.Abs() > clock.SkewMax {
		x.problem("clocks", "repair the time service of one of them", "this machine's clock and that of %s are %s apart", worst.name, off.Abs())
		return
	}
	x.ok("clocks", "the clocks of %d nodes are within %s of this machine's", len(x.live.nodes), off.Abs())
}
