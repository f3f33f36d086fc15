package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"

	"facet/internal/must"
)

func TestFilesMatchTables(t *testing.T) {
	t.Parallel()
	all, err := files()
	must.Do(t, err)
	for name, want := range all {
		got, err := os.ReadFile(filepath.Join("..", "..", "deploy", filepath.FromSlash(name)))
		must.Do(t, err)
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("deploy/%s is out of date (make dashboards):\n%.3000s", name, diff)
		}
	}
}

// grafanaReads reads a dashboard as Grafana's own types do, which refuse unknown fields and lack none.
func grafanaReads(text string) error {
	runtime := cog.NewRuntime()
	runtime.RegisterDataqueryVariant(prometheus.VariantConfig())
	runtime.RegisterPanelcfgVariant(stat.VariantConfig())
	runtime.RegisterPanelcfgVariant(timeseries.VariantConfig())
	var d dashboard.Dashboard //nolint:staticcheck // of the first form of dashboards
	err := d.UnmarshalJSONStrict([]byte(text))
	if list, ok := errors.AsType[cog.BuildErrors](err); ok && len(list) == 0 {
		return nil // the types return an empty list for success
	}
	return err
}

func TestBoardsKeepGrafanasSchema(t *testing.T) {
	t.Parallel()
	for _, b := range []board{operators, officers} {
		text, err := b.json()
		must.Do(t, err)
		if err := grafanaReads(string(text)); err != nil {
			t.Errorf("%s: %v", b.name, err)
		}
		for from, to := range map[string]string{
			`"fieldConfig"`: `"fieldsConfig"`, `"expr"`: `"expression"`, `"colorMode"`: `"colourMode"`, `"schemaVersion": 42`: `"schemaVersion": "42"`,
		} {
			if grafanaReads(strings.Replace(string(text), from, to, 1)) == nil {
				t.Errorf("%s: a dashboard with %s is read", b.name, to)
			}
		}
	}
}

func TestLimitsColourValues(t *testing.T) {
	t.Parallel()
	f := func(l limits, want string) {
		t.Helper()
		var got []string
		for _, s := range l.steps() {
			got = append(got, s.Color) //nolint:misspell // Grafana's spelling
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%+v: got %s, want %s", l, text, want)
		}
		for i, s := range l.steps() {
			if (s.Value == nil) != (i == 0) || i > 1 && *s.Value < *l.steps()[i-1].Value {
				t.Errorf("%+v: step %d has no rising value", l, i)
			}
		}
	}
	f(limits{}, "green")
	f(above(1, 2), "green orange red")
	f(below(2, 1), "red orange green")
}

func TestPanelsKeepOrderOfLimits(t *testing.T) {
	t.Parallel()
	for _, b := range []board{operators, officers} {
		for _, r := range b.rows {
			for _, p := range r.panels {
				if l := p.limits; l.set && (l.under && l.orange < l.red || !l.under && l.orange > l.red) {
					t.Errorf("%s, %s: orange at %v, red at %v", b.name, p.title, l.orange, l.red)
				}
			}
		}
	}
}
