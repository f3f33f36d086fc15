package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// An operator exports the cluster's own log, and both verifiers take it. It has the orders that the cluster got.
func TestClusterLogIsExportedAndVerified(t *testing.T) {
	t.Parallel()
	c, s := audited(t, "audit-export")
	out := s.run(0, "the cluster: ", "audit", "export-all", "--to", "audits", "--dir", c.dir)
	if !strings.Contains(out, "tenant audit-export: ") {
		t.Errorf("the tenant's log is not exported:\n%s", out)
	}
	key := strings.TrimSpace(s.run(0, "", "audit", "key", "--cluster", "--dir", c.dir))
	s.run(0, "VALID: ", "audit", "verify", "audits/cluster", "--key", key)
	check := exec.Command(filepath.Join(root, "assets", "venv", "bin", "python"), filepath.Join(root, "scripts", "audit", "verify.py"), "audits/cluster", "--key", key)
	check.Dir = s.dir
	if text, err := check.CombinedOutput(); err != nil {
		t.Errorf("verify.py: %v\n%s", err, text)
	}
	orders := records(t, s.run(0, "", "audit", "search", "--cluster", "--json", "--kind", "command", "--most", "1000", "--dir", c.dir))
	var about []string
	for _, r := range orders {
		if !strings.HasPrefix(r.Operation, "GET ") {
			about = append(about, fmt.Sprint(r.Operation, ": ", r.Reason, ", ", r.Status))
		}
	}
	slices.Reverse(about)
	want := []string{"create tenant: audit-export, 201", "set tenant: audit-export audit strict, 200", "create access key: audit-export auditor internal audit, 201"}
	for _, w := range want {
		if !slices.Contains(about, w) {
			t.Errorf("the orders are %q, without %q", about, w)
		}
	}
	s.run(0, "proof: ", "audit", "prove", "1", "--cluster", "--to", "1.tlog-proof", "--dir", c.dir)
}
