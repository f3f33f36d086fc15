package node_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"facet/node/metrics"
	"facet/node/nodetest"
)

// TestDashboardMetricsExist: what dashboards and alerts name and does not
// come with work (the catalogue's counters and histograms with labels) is there from the
// start, the Go runtime's and the process's own included.
func TestDashboardMetricsExist(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 1, Shards: 1}, func(t *testing.T, c *nodetest.Cluster) {
		there := map[string]bool{}
		for sample := range scrape(t, c.Nodes[0]) {
			name, _, _ := strings.Cut(sample, "{")
			there[name] = true
		}
		form := regexp.MustCompile(`\b(?:facet|go|process)_[a-z_]+\b`)
		looked := map[string]bool{}
		for _, file := range []string{"grafana/operators.json", "grafana/officers.json", "prometheus/alerts.yml"} {
			raw, err := os.ReadFile(filepath.Join("..", "deploy", filepath.FromSlash(file)))
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.SplitSeq(string(raw), "\n") {
				if !strings.Contains(line, "expr") {
					continue
				}
				for _, name := range form.FindAllString(line, -1) {
					looked[name] = true
				}
			}
		}
		if len(looked) < 30 {
			t.Fatalf("only %d metrics are looked at", len(looked))
		}
		for name := range looked {
			d, own := metrics.Find(name)
			comes := own && len(d.Labels) > 0 && d.Kind != metrics.Gauge // with the first of its kind
			// The engine of this node runs no models, and the group has no snapshot yet.
			absent := name == "facet_engine_waiting" || name == "facet_engine_waiting_limit" || name == "facet_group_snapshot_age_seconds"
			if !there[name] && !comes && !absent {
				t.Errorf("dashboards or alerts look at %s, which a live node does not have", name)
			}
		}
	})
}
