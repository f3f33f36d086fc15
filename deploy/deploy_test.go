// Package deploy_test holds what people deploy with to what the program has: alerts and
// the dashboard name metrics that exist, and alerts lead to a chapter of the operations
// guide.
package deploy_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"facet/node/metrics"
)

type alert struct {
	Alert, Expr string
	Labels      map[string]string
	Annotations map[string]string
}

func alerts(t *testing.T) (list []alert) {
	t.Helper()
	var file struct {
		Groups []struct{ Rules []alert }
	}
	read(t, filepath.Join("prometheus", "alerts.yml"), yaml.Unmarshal, &file)
	for _, g := range file.Groups {
		list = append(list, g.Rules...)
	}
	if len(list) < 10 {
		t.Fatalf("there are %d alerts only", len(list))
	}
	return list
}

func read(t *testing.T, name string, unmarshal func([]byte, any) error, v any) {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := unmarshal(raw, v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

var (
	metricForm = regexp.MustCompile(`\b(facet|go|process)_[a-z_]+`)
	labelForm  = regexp.MustCompile(`\b([a-z_]+)(?:=~|!~|!=|=)"`)
	byForm     = regexp.MustCompile(`\b(?:by|on) \(([a-z_, ]*)\)`)
)

// expressionHolds: the metrics of an expression exist, and so do its labels.
func expressionHolds(t *testing.T, where, expr string) {
	t.Helper()
	known := []string{"le", "instance", "job"}
	own := 0
	for _, name := range metricForm.FindAllString(expr, -1) {
		if !strings.HasPrefix(name, "facet_") {
			continue
		}
		d, ok := metrics.Find(name)
		if !ok {
			t.Errorf("%s: there is no metric %s", where, name)
			continue
		}
		own++
		known = append(known, d.Labels...)
	}
	var labels []string
	for _, m := range labelForm.FindAllStringSubmatch(expr, -1) {
		labels = append(labels, m[1])
	}
	for _, m := range byForm.FindAllStringSubmatch(expr, -1) {
		for l := range strings.SplitSeq(m[1], ",") {
			labels = append(labels, strings.TrimSpace(l))
		}
	}
	for _, l := range labels {
		if l != "" && !slices.Contains(known, l) {
			t.Errorf("%s: none of its metrics has the label %q", where, l)
		}
	}
	if own == 0 && !strings.HasPrefix(expr, "up{") && !metricForm.MatchString(expr) {
		t.Errorf("%s: %q is about no metric of a node", where, expr)
	}
	for _, pair := range []string{"()", "{}", "[]"} {
		if strings.Count(expr, pair[:1]) != strings.Count(expr, pair[1:]) {
			t.Errorf("%s: %q is not closed", where, expr)
		}
	}
}

func TestAlertsNameMetricsAndChapter(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile(filepath.Join("..", "docs", "operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	chapters := map[string]bool{}
	for line := range strings.Lines(string(guide)) {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			chapters[strings.ReplaceAll(strings.ToLower(strings.TrimSpace(heading)), " ", "-")] = true
		}
	}
	fires := alertsThatFire(t)
	for _, a := range alerts(t) {
		expressionHolds(t, a.Alert, a.Expr)
		if !chapters[a.Annotations["runbook"]] {
			t.Errorf("%s: the operations guide has no chapter %q", a.Alert, a.Annotations["runbook"])
		}
		if a.Annotations["summary"] == "" || !slices.Contains([]string{"page", "ticket"}, a.Labels["severity"]) {
			t.Errorf("%s: no summary or severity", a.Alert)
		}
		if !fires[a.Alert] {
			t.Errorf("%s fires in no test of alerts_test.yml", a.Alert)
		}
	}
}

// alertsThatFire returns the alerts that a test of alerts_test.yml wants to fire.
func alertsThatFire(t *testing.T) map[string]bool {
	t.Helper()
	var file struct {
		Tests []struct {
			Rules []struct {
				Name string           `yaml:"alertname"`
				Want []map[string]any `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	read(t, filepath.Join("prometheus", "alerts_test.yml"), yaml.Unmarshal, &file)
	fires := map[string]bool{}
	for _, test := range file.Tests {
		for _, r := range test.Rules {
			fires[r.Name] = fires[r.Name] || len(r.Want) > 0
		}
	}
	return fires
}

func TestDashboardShowsKnownMetrics(t *testing.T) {
	t.Parallel()
	type panel struct {
		ID      int
		Type    string
		Title   string
		GridPos struct{ X, Y, W, H int }
		Targets []struct{ Expr string }
	}
	var board struct {
		Title, UID string
		Panels     []panel
	}
	read(t, filepath.Join("grafana", "facet.json"), json.Unmarshal, &board)
	if board.Title == "" || board.UID == "" {
		t.Error("the dashboard has no title or uid")
	}
	var rows []string
	seen, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range board.Panels {
		if seen[p.ID] {
			t.Errorf("%s: its id is another's", p.Title)
		}
		seen[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%s lies over %q or beyond the edge", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			rows = append(rows, p.Title)
			continue
		}
		if len(p.Targets) == 0 {
			t.Errorf("%s shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			expressionHolds(t, p.Title, strings.ReplaceAll(target.Expr, "$__rate_interval", "5m"))
		}
	}
	want := []string{"Cluster", "Requests", "Searches", "Face engine", "Raft groups", "Storage and memory", "Bulk registration"}
	if !slices.Equal(rows, want) {
		t.Errorf("rows: got %q, want %q", rows, want)
	}
}

func TestUnitBarsCoreDumps(t *testing.T) {
	t.Parallel()
	unit, err := os.ReadFile(filepath.Join("systemd", "facet.service"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"LimitCORE=0", "MemorySwapMax=0"} {
		if !slices.Contains(strings.Split(string(unit), "\n"), line) {
			t.Errorf("the unit has no %s", line)
		}
	}
}
