package main

import (
	"bytes"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// What promtool puts in the place of Grafana's variables, and when it asks.
var (
	atTest = strings.NewReplacer("$__rate_interval", "5m", "$__range", "20m", "$node", ".*")
	asked  = "20m"
	// Versions of Prometheus differ in the last bits of a quantile.
	rounded = "round(%s, 0.0001)"
)

const testsHead = `# Tests of the queries of deploy/grafana: promtool test rules panels_test.yml (make alerts).
# go run ./scripts/dashboards writes this file.
`

// The part of promtool's test files that panels need.
type (
	testFile struct {
		Interval string     `yaml:"evaluation_interval"`
		Tests    []testCase `yaml:"tests"`
	}
	testCase struct {
		Name     string       `yaml:"name"`
		Interval string       `yaml:"interval"`
		Series   []testSeries `yaml:"input_series"`
		Exprs    []testExpr   `yaml:"promql_expr_test"`
	}
	testSeries struct {
		Series string `yaml:"series"`
		Values string `yaml:"values"`
	}
	testExpr struct {
		Expr    string       `yaml:"expr"`
		At      string       `yaml:"eval_time"`
		Samples []testSample `yaml:"exp_samples"`
	}
	testSample struct {
		Labels string    `yaml:"labels"`
		Value  yaml.Node `yaml:"value"`
	}
)

// tests returns the tests of all queries. A query without a test is left out, and deploy_test.go
// misses it.
func tests(boards []board) ([]byte, error) {
	file := testFile{Interval: "1m"}
	for _, b := range boards {
		for _, r := range b.rows {
			for _, p := range r.panels {
				for i, q := range p.queries {
					c, err := q.test()
					if err != nil {
						return nil, fmt.Errorf("%s, %s: %w", b.name, p.title, err)
					}
					if c == nil {
						continue
					}
					c.Name = fmt.Sprintf("%s, %s, %c", b.name, p.title, 'A'+i)
					file.Tests = append(file.Tests, *c)
				}
			}
		}
	}
	out := bytes.NewBufferString(testsHead)
	to := yaml.NewEncoder(out)
	to.SetIndent(2)
	err := to.Encode(file)
	return out.Bytes(), err
}

// test returns the query's test, nil without one.
func (q query) test() (*testCase, error) {
	if q.want == "" {
		return nil, nil
	}
	c := &testCase{Interval: "1m", Exprs: []testExpr{{Expr: fmt.Sprintf(rounded, atTest.Replace(q.expr)), At: asked}}}
	for line := range strings.SplitSeq(q.given, ";") {
		series, values, ok := cutLine(line)
		if !ok {
			return nil, fmt.Errorf("%q has no values", line)
		}
		c.Series = append(c.Series, testSeries{series, values})
	}
	for line := range strings.SplitSeq(q.want, ";") {
		labels, value, ok := cutLine(line)
		if !ok {
			return nil, fmt.Errorf("%q has no value", line)
		}
		c.Exprs[0].Samples = append(c.Exprs[0].Samples, testSample{labels, yaml.Node{Kind: yaml.ScalarNode, Value: value}})
	}
	return c, nil
}

// cutLine splits a line behind its labels, or behind the metric's name.
func cutLine(line string) (series, rest string, ok bool) {
	line = strings.TrimSpace(line)
	if i := strings.LastIndexByte(line, '}'); i >= 0 {
		return line[:i+1], strings.TrimSpace(line[i+1:]), len(line) > i+2
	}
	return strings.Cut(line, " ")
}
