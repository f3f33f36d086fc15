package main

import (
	"encoding/json"
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// A board is a dashboard.
type board struct {
	name  string // of the file and, behind "facet-", the uid
	title string
	is    string
	since string // the range that it opens with
	rows  []row
}

type row struct {
	title  string
	panels []panel
}

// A panel draws its queries over the time, or with now set shows their present values.
type panel struct {
	title, is string
	now       bool
	unit      string // one of units
	limits    limits
	queries   []query
	zero      string // instead of the value 0
}

// A query has an expression, the name of its series, and its test: given series with values as
// promtool takes them, it wants samples. A semicolon ends each but the last.
type query struct{ expr, legend, given, want string }

// limits say from where on a value is orange and red; values below the limits are if under is set.
type limits struct {
	set, under  bool
	orange, red float64
}

func above(orange, red float64) limits { return limits{true, false, orange, red} }
func below(orange, red float64) limits { return limits{true, true, orange, red} }

func (l limits) steps() []dashboard.Threshold {
	step := func(colour string, from *float64) dashboard.Threshold {
		return dashboard.Threshold{Value: from, Color: colour} //nolint:misspell // Grafana's spelling
	}
	switch {
	case !l.set:
		return []dashboard.Threshold{step("green", nil)}
	case l.under:
		return []dashboard.Threshold{step("red", nil), step("orange", &l.red), step("green", &l.orange)}
	default:
		return []dashboard.Threshold{step("green", nil), step("orange", &l.orange), step("red", &l.red)}
	}
}

// Sizes on Grafana's grid.
const (
	gridWidth               = 24
	statWidth, statHeight   = 6, 4
	chartWidth, chartHeight = 8, 7
)

// source is the Prometheus that the reader has chosen.
var source = common.DataSourceRef{Type: new("prometheus"), Uid: new("${source}")}

// json returns the dashboard as Grafana imports it: in the first form of dashboards, which every
// Grafana reads; the second one is for the newest.
func (b *board) json() ([]byte, error) {
	//nolint:staticcheck // of the first form
	d := dashboard.NewDashboardBuilder(b.title).Uid("facet-"+b.name).Description(b.is).Tags([]string{"facet"}).
		Time(b.since, "now").Refresh("30s").Tooltip(dashboard.DashboardCursorSyncCrosshair).
		Link(dashboard.NewDashboardLinkBuilder("facet").Type(dashboard.DashboardLinkTypeDashboards).Tags([]string{"facet"}).IncludeVars(true).KeepTime(true)).
		WithVariable(dashboard.NewDatasourceVariableBuilder("source").Label("Prometheus").Type("prometheus")).
		WithVariable(dashboard.NewQueryVariableBuilder("node").Label("Node").Datasource(source).
			Query(dashboard.StringOrMap{String: new("label_values(facet_ready, instance)")}).
			Refresh(dashboard.VariableRefreshOnTimeRangeChanged).Sort(dashboard.VariableSortAlphabeticalAsc).
			Multi(true).IncludeAll(true).AllValue(".*").
			Current(dashboard.VariableOption{
				Text:  dashboard.StringOrArrayOfString{ArrayOfString: []string{"All"}},
				Value: dashboard.StringOrArrayOfString{ArrayOfString: []string{"$__all"}},
			}))
	var at dashboard.GridPos
	id := uint32(0)
	for _, r := range b.rows {
		at = dashboard.GridPos{Y: at.Y + at.H, H: 1, W: gridWidth}
		id++
		d.WithRow(dashboard.NewRowBuilder(r.title).Id(id).GridPos(at))
		for _, p := range r.panels {
			at = p.after(at)
			id++
			d.WithPanel(p.builder(id, at))
		}
	}
	built, err := d.Build()
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(built, "", " ")
	return append(text, '\n'), err
}

// after returns the place of a panel behind the one at last.
func (p *panel) after(last dashboard.GridPos) dashboard.GridPos {
	at := dashboard.GridPos{X: last.X + last.W, Y: last.Y, W: chartWidth, H: chartHeight}
	if p.now {
		at.W, at.H = statWidth, statHeight
	}
	if at.X+at.W > gridWidth || at.H != last.H {
		at.X, at.Y = 0, last.Y+last.H
	}
	return at
}

func (p *panel) builder(id uint32, at dashboard.GridPos) *dashboard.PanelBuilder {
	b := dashboard.NewPanelBuilder().Id(id).Title(p.title).Description(p.is).Datasource(source).GridPos(at).Unit(p.unit).
		Thresholds(dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(p.limits.steps()))
	if p.zero != "" {
		b.Mappings([]dashboard.ValueMapping{{ValueMap: &dashboard.ValueMap{
			Type: dashboard.MappingTypeValueToText, Options: map[string]dashboard.ValueMappingResult{"0": {Text: &p.zero}},
		}}})
	}
	if p.unit != units.DatetimeISO && p.unit != units.DateTimeFromNow {
		b.Min(0)
	}
	if p.now {
		p.asStat(b)
	} else {
		p.asChart(b)
	}
	for i, q := range p.queries {
		target := prometheus.NewDataqueryBuilder().RefId(fmt.Sprintf("%c", 'A'+i)).Datasource(source).Expr(q.expr).LegendFormat(q.legend)
		if p.now {
			target.Instant()
		} else {
			target.Range()
		}
		b.WithTarget(target)
	}
	return b
}

// asStat shows the last value of each series as a number.
func (p *panel) asStat(b *dashboard.PanelBuilder) {
	b.Type("stat").Options(stat.Options{
		GraphMode: common.BigValueGraphModeNone, ColorMode: common.BigValueColorModeValue, JustifyMode: common.BigValueJustifyModeAuto,
		TextMode: common.BigValueTextModeAuto, WideLayout: true, Orientation: common.VizOrientationAuto,
		PercentChangeColorMode: common.PercentChangeColorModeStandard,
		ReduceOptions:          common.ReduceDataOptions{Calcs: []string{"lastNotNull"}},
	})
}

// asChart draws each series as a line, and the limits as dashes.
func (p *panel) asChart(b *dashboard.PanelBuilder) {
	dashes := common.GraphThresholdsStyleModeOff
	if p.limits.set {
		dashes = common.GraphThresholdsStyleModeDashed
	}
	options := timeseries.NewOptions()
	options.Legend.ShowLegend = true
	options.Tooltip = common.VizTooltipOptions{Mode: common.TooltipDisplayModeMulti, Sort: common.SortOrderDescending}
	b.Type("timeseries").Options(options).
		ColorScheme(dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdPaletteClassic)).
		Custom(common.GraphFieldConfig{ThresholdsStyle: &common.GraphThresholdsStyleConfig{Mode: dashes}})
}
