// Package deploy_test holds what people deploy with to what the program has: alerts and
// dashboards name metrics that exist and have tests, and alerts lead to a chapter of the operations
// guide.
package deploy_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"facet/internal/must"
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
	must.Do(t, err)
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
	if strings.Contains(expr, "ALERTS{") {
		known = append(known, "alertname", "alertstate", "severity")
	}
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
	if own == 0 && !strings.HasPrefix(expr, "up{") && !strings.Contains(expr, "ALERTS{") && !metricForm.MatchString(expr) {
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
	must.Do(t, err)
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

// board is the part of a dashboard that the tests look at.
type board struct {
	Title, UID, Description string
	SchemaVersion           int
	Panels                  []panel
	Templating              struct {
		List []struct{ Name, Type string }
	}
}

type panel struct {
	ID                       int
	Type, Title, Description string
	Datasource               struct{ UID string }
	GridPos                  struct{ X, Y, W, H int }
	Targets                  []struct{ Expr, LegendFormat string }
	FieldConfig              struct {
		Defaults struct {
			Unit       string
			Thresholds struct{ Steps []struct{ Value *float64 } }
		}
	}
}

func boards(t *testing.T) map[string]board {
	t.Helper()
	all := map[string]board{}
	for _, name := range []string{"operators", "officers"} {
		var b board
		read(t, filepath.Join("grafana", name+".json"), json.Unmarshal, &b)
		all[name] = b
	}
	return all
}

// TestDashboardsShowKnownMetrics: each panel explains itself, asks the reader's Prometheus for metrics
// that exist, and overlaps no other.
func TestDashboardsShowKnownMetrics(t *testing.T) {
	t.Parallel()
	for name, b := range boards(t) {
		if b.Title == "" || b.UID != "facet-"+name || b.Description == "" || b.SchemaVersion < 41 {
			t.Errorf("%s: title %q, uid %q, description %q, schema %d", name, b.Title, b.UID, b.Description, b.SchemaVersion)
		}
		if v := b.Templating.List; len(v) != 2 || v[0].Name != "source" || v[0].Type != "datasource" || v[1].Name != "node" || v[1].Type != "query" {
			t.Errorf("%s: variables %+v", name, v)
		}
		seen, taken, asked := map[int]bool{}, map[[2]int]string{}, false
		for _, p := range b.Panels {
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
			if p.Type != "row" {
				panelHolds(t, p)
				asked = asked || slices.ContainsFunc(p.Targets, func(q struct{ Expr, LegendFormat string }) bool { return strings.Contains(q.Expr, "$node") })
			}
		}
		if !asked {
			t.Errorf("%s: no panel uses the variable node", name)
		}
	}
}

func panelHolds(t *testing.T, p panel) {
	t.Helper()
	if p.Title == "" || p.Description == "" || p.FieldConfig.Defaults.Unit == "" || p.Datasource.UID != "${source}" || len(p.FieldConfig.Defaults.Thresholds.Steps) == 0 {
		t.Errorf("%q: description %q, unit %q, source %q, %d thresholds", p.Title, p.Description, p.FieldConfig.Defaults.Unit, p.Datasource.UID, len(p.FieldConfig.Defaults.Thresholds.Steps))
	}
	if len(p.Targets) == 0 {
		t.Errorf("%s shows nothing", p.Title)
	}
	for i, s := range p.FieldConfig.Defaults.Thresholds.Steps {
		if (s.Value == nil) != (i == 0) || i > 1 && *s.Value < *p.FieldConfig.Defaults.Thresholds.Steps[i-1].Value {
			t.Errorf("%s: step %d of the thresholds has no rising value", p.Title, i)
		}
	}
	for _, q := range p.Targets {
		expressionHolds(t, p.Title, tested(q.Expr))
		if q.LegendFormat == "" {
			t.Errorf("%s: a query has no legend", p.Title)
		}
	}
}

// tested returns a panel's query as its test in panels_test.yml asks it.
func tested(expr string) string {
	return "round(" + strings.NewReplacer("$__rate_interval", "5m", "$__range", "20m", "$node", ".*").Replace(expr) + ", 0.0001)"
}

func TestEveryQueryOfPanelsIsTested(t *testing.T) {
	t.Parallel()
	var file struct {
		Tests []struct {
			Exprs []struct {
				Expr    string
				Samples []any `yaml:"exp_samples"`
			} `yaml:"promql_expr_test"`
		}
	}
	read(t, filepath.Join("prometheus", "panels_test.yml"), yaml.Unmarshal, &file)
	want := map[string]bool{} // what a test wants an answer of
	for _, test := range file.Tests {
		for _, e := range test.Exprs {
			want[e.Expr] = want[e.Expr] || len(e.Samples) > 0
		}
	}
	for name, b := range boards(t) {
		for _, p := range b.Panels {
			for _, q := range p.Targets {
				if !want[tested(q.Expr)] {
					t.Errorf("%s, %s: no test in panels_test.yml shows what %q answers", name, p.Title, q.Expr)
				}
			}
		}
	}
}

func TestUnitBarsCoreDumps(t *testing.T) {
	t.Parallel()
	unit, err := os.ReadFile(filepath.Join("systemd", "facet.service"))
	must.Do(t, err)
	for _, line := range []string{"LimitCORE=0", "MemorySwapMax=0"} {
		if !slices.Contains(strings.Split(string(unit), "\n"), line) {
			t.Errorf("the unit has no %s", line)
		}
	}
}

// The score of systemd's own judge. Newer versions of it know more.
func TestUnitIsHardened(t *testing.T) {
	t.Parallel()
	const judge = "systemd-analyze" //nolint:misspell // its name
	if _, err := exec.LookPath(judge); err != nil {
		t.Skip("this machine has no " + judge)
	}
	out, err := exec.Command(judge, "security", "--offline=true", "--no-pager", "--threshold=20", filepath.Join("systemd", "facet.service")).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Overall exposure level") {
		t.Errorf("exposure above 2.0: %v\n%s", err, out)
	}
}
