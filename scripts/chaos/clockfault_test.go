package main

import (
	"os"
	"strings"
	"testing"

	"facet/internal/must"
)

// The fault checks the rules that Prometheus is given.
func TestClockRulesAreOfTheAlert(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../deploy/prometheus/alerts.yml")
	must.Do(t, err)
	const alert = "- alert: FacetClockSkew\n        expr: "
	for _, rule := range clockRules {
		if !strings.Contains(string(text), alert+rule.expr+"\n") {
			t.Errorf("FacetClockSkew has no rule %q", rule.expr)
		}
	}
	if n := strings.Count(string(text), alert); n != len(clockRules) {
		t.Errorf("FacetClockSkew has %d rules, the fault checks %d", n, len(clockRules))
	}
}
