// Package dashboards reads deploy/grafana with Grafana's own types.
package dashboards

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"

	"facet/internal/must"
)

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

func TestDashboardsKeepGrafanasSchema(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("..", "..", "deploy", "grafana", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no dashboards: %v", err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		must.Do(t, err)
		if err := grafanaReads(string(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for from, to := range map[string]string{
			`"fieldConfig"`: `"fieldsConfig"`, `"expr"`: `"expression"`, `"colorMode"`: `"colourMode"`, `"schemaVersion": 42`: `"schemaVersion": "42"`,
		} {
			if grafanaReads(strings.Replace(string(text), from, to, 1)) == nil {
				t.Errorf("%s: a dashboard with %s is read", name, to)
			}
		}
	}
}
