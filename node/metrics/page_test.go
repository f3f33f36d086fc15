package metrics_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"facet/internal/must"
	"facet/node/metrics"
)

var rewrite = flag.Bool("rewrite", false, "write docs/metrics.md anew")

func TestPageMatchesCatalogue(t *testing.T) {
	t.Parallel()
	page := filepath.Join("..", "..", "docs", "metrics.md")
	want := metrics.Markdown()
	if *rewrite {
		must.Do(t, os.WriteFile(page, []byte(want), 0o644))
	}
	got, err := os.ReadFile(page)
	must.Do(t, err)
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/metrics.md is out of date (go test ./node/metrics -run Page -rewrite):\n%s", diff)
	}
}

// TestNamesFollowConventions: the prefix, the unit and _total at the end of
// counters and of nothing else (prometheus.io/docs/practices/naming).
func TestNamesFollowConventions(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	form := regexp.MustCompile(`^facet(_[a-z]+)+$`)
	unbounded := []string{"tenant", "gallery", "application", "subject", "event", "key", "address", "job"}
	for _, s := range metrics.Catalogue {
		for _, d := range s.Metrics {
			if !form.MatchString(d.Name) || seen[d.Name] {
				t.Errorf("%s: a bad or second name", d.Name)
			}
			seen[d.Name] = true
			if strings.HasSuffix(d.Name, "_total") != (d.Kind == metrics.Counter) {
				t.Errorf("%s is a %s", d.Name, d.Kind)
			}
			if (d.Kind == metrics.Histogram) != (len(d.Buckets) > 0) || len(d.Buckets) > 10 || d.Kind == metrics.Histogram && !strings.HasSuffix(d.Name, "_seconds") {
				t.Errorf("%s has %d buckets", d.Name, len(d.Buckets))
			}
			if !strings.HasSuffix(d.Help, ".") || strings.Contains(d.Help, "|") {
				t.Errorf("%s: %q is no sentence for a table", d.Name, d.Help)
			}
			for _, l := range d.Labels {
				for _, bad := range unbounded {
					if l == bad {
						t.Errorf("%s has the label %q, whose values have no bound", d.Name, l)
					}
				}
			}
		}
	}
}

// Each metric of Process has the name and the kind that Go's release gives it, and the page lists
// every reading of the runtime that nodes export.
func TestProcessListsWhatRuntimeExports(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	metrics.RegisterProcess(registry)
	families, err := registry.Gather()
	must.Do(t, err)
	exported := map[string]metrics.Kind{}
	for _, f := range families {
		exported[f.GetName()] = metrics.Kind(strings.ToLower(f.GetType().String()))
	}
	listed := map[string]bool{}
	for _, d := range metrics.Process.Metrics {
		listed[d.Name] = true
		if strings.HasPrefix(d.Name, "process_") && runtime.GOOS != "linux" {
			continue
		}
		if exported[d.Name] != d.Kind {
			t.Errorf("%s: listed as %q, exported as %q", d.Name, d.Kind, exported[d.Name])
		}
	}
	for _, f := range families {
		if strings.Contains(f.GetHelp(), "Sourced from ") && !listed[f.GetName()] {
			t.Errorf("%s is not on the page", f.GetName())
		}
	}
}

func TestRequestIsCounted(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	w := metrics.NewWork(registry, []string{"rate", "fault"})
	w.Request(metrics.Request{Operation: "GET /x", Status: 429, Took: time.Second, BodyBytes: 5, AnswerBytes: 7, Refusal: "rate"})
	w.Request(metrics.Request{Status: 404})
	w.Proposed(3)(time.Millisecond, nil)
	w.Proposed(3)(time.Millisecond, os.ErrDeadlineExceeded)
	w.Proposed(4)(time.Millisecond, nil)
	w.Dropped(4)
	w.Hedged()
	w.HedgeWon()
	got := values(t, registry)
	for name, want := range map[string]float64{
		`facet_requests_total{GET /x,429}`:         1,
		`facet_requests_total{none,404}`:           1,
		`facet_requests_refused_total{rate}`:       1,
		`facet_request_body_bytes_total{}`:         5,
		`facet_answer_body_bytes_total{}`:          7,
		`facet_request_duration_seconds{GET /x}`:   1,
		`facet_group_proposal_duration_seconds{3}`: 1,
		`facet_group_proposals_failed_total{3}`:    1,
		`facet_engine_image_duration_seconds{}`:    0,
		`facet_shard_search_duration_seconds{}`:    0,
		`facet_search_rows_total{}`:                0,
		`facet_read_hedges_total{}`:                1,
		`facet_read_hedges_won_total{}`:            1,
		`facet_requests_total{GET /x,200}`:         0,
		`facet_group_proposal_duration_seconds{4}`: 0,
	} {
		if got[name] != want {
			t.Errorf("%s: got %v, want %v", name, got[name], want)
		}
	}
	for _, name := range []string{ // there before their first event
		"facet_requests_refused_total{fault}", "facet_job_files_total{registered}", "facet_job_files_total{refused}",
		"facet_engine_images_total{ok}", "facet_engine_images_total{bad}", "facet_engine_images_total{busy}", "facet_engine_images_total{fault}",
	} {
		if v, ok := got[name]; !ok || v != 0 {
			t.Errorf("%s: got %v, %t, want 0", name, v, ok)
		}
	}
	if len(got) != 21 {
		t.Errorf("got %d values: %v", len(got), got)
	}
}

// values returns the values of a registry: of counters and gauges the value, of
// histograms the count.
func values(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	must.Do(t, err)
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			v := m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			out[f.GetName()+"{"+strings.Join(labels, ",")+"}"] = v
		}
	}
	return out
}

func BenchmarkCountRequest(b *testing.B) {
	w := metrics.NewWork(prometheus.NewRegistry(), nil)
	r := metrics.Request{Operation: "POST /v1.1/face/search", Status: 200, Took: 60 * time.Millisecond, BodyBytes: 100_000, AnswerBytes: 1000}
	b.ReportAllocs()
	for b.Loop() {
		w.Request(r)
	}
}
