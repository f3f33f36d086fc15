package e2e

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// counted returns the sum of a counter over the nodes at admin addresses, for the labels whose text
// begins with the second part of series.
func counted(t *testing.T, admins []string, series string) (sum int) {
	t.Helper()
	for _, at := range admins {
		out, err := exec.Command("curl", "-sk", "--fail", "https://"+at+"/metrics").Output()
		if err != nil {
			t.Fatalf("metrics of %s: %v", at, err)
		}
		for line := range strings.Lines(string(out)) {
			if !strings.HasPrefix(line, series) {
				continue
			}
			n, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]), 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += int(n)
		}
	}
	return sum
}

// A tenant's rate lets six requests through in a second. The import slows down; no row fails.
func TestImportKeepsToRateLimit(t *testing.T) {
	t.Parallel()
	const rows = 30
	c := shared(t)
	s := newTenant(t, c, "import-rate")
	s.run(0, "", "gallery", "create", "staff")
	s.run(0, "", "tenant", "set", "import-rate", "requests=2", "--dir", c.dir)
	var admins []string
	for _, n := range c.info.Nodes {
		admins = append(admins, n.Admin)
	}
	folder := crowd(t, rows)
	before := counted(t, admins, `facet_requests_refused_total{reason="rate"}`)
	s.run(0, fmt.Sprintf("%d registered", rows), "import", folder, "--at-once", "24")
	wantAll(t, folder+".report.csv", rows)
	refused := counted(t, admins, `facet_requests_refused_total{reason="rate"}`) - before
	t.Logf("%d rows, %d answers of 429", rows, refused)
	if refused == 0 || refused > 4*rows {
		t.Errorf("%d rows got 429 %d times", rows, refused)
	}
}
