package e2e

import (
	"os"
	"strings"
	"testing"
	"time"
)

// Leaderships go to their places leaderRest (5 s) after the elections. The test looks at the
// log after that.
const firstStartRest = 8 * time.Second

// A line of level WARN or ERROR wants somebody to look, and a first start is no reason.
func TestFirstStartWarnsOfNothing(t *testing.T) {
	c := serve(t, program(), 3, 8)
	time.Sleep(firstStartRest)
	for _, n := range c.nodes {
		b, err := os.ReadFile(n.log)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(b), "level=INFO msg=serving") {
			t.Errorf("%s does not say that it serves:\n%s", n.name, b)
		}
		for line := range strings.Lines(string(b)) {
			if strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR") {
				t.Errorf("%s: %s", n.name, line)
			}
		}
	}
}
