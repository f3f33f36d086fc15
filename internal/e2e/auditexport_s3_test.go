//go:build long

package e2e

import (
	"path/filepath"
	"strings"
	"testing"
)

// Logs are exported to a real object store and verified there; an operator exports those of all tenants, and
// leaves no key behind.
func TestAuditLogsAreExportedToObjectStore(t *testing.T) {
	store := startS3(t)
	c, s := audited(t, "bank")
	newTenant(t, c, "shop")
	s.run(0, "", "tenant", "set", "shop", "--audit", "off", "--dir", c.dir) // this order is all that its log has
	to := strings.Replace(store.url, "/facet?", "/facet/bank?", 1)
	export := []string{"audit", "export", "--to", to, "--profile", "auditor.json"}
	s.run(0, "/facet/bank has ", export...)
	s.run(0, " of them new", export...)
	key := strings.TrimSpace(s.run(0, "", "audit", "key", "--profile", "auditor.json"))
	s.run(0, "VALID: ", "audit", "verify", to, "--key", key)
	s.run(0, "proof: ", "audit", "prove", "2", "--from", to, "--to", "2.tlog-proof")
	s.run(0, "VALID: entry 2 of", "audit", "verify", "2.tlog-proof", "--key", key)
	partial, err := filepath.Glob(filepath.Join(store.dir, "bank/tile/entries/000.p/*"))
	if err != nil || len(partial) != 1 {
		t.Fatalf("the store has the bundles %v, %v, want one", partial, err)
	}
	b := read(t, partial[0])
	b[40] ^= 1
	put(t, "", partial[0], b)
	s.run(1, "NOT VALID: 1 faults", "audit", "verify", to, "--key", key)

	all := []string{"audit", "export-all", "--to", strings.Replace(store.url, "/facet?", "/all?", 1), "--dir", c.dir}
	out := s.run(0, "tenant bank: ", all...)
	_, place, _ := strings.Cut(out, "tenant bank: ")
	place, _, _ = strings.Cut(place, " has ")
	_, parameters, _ := strings.Cut(store.url, "?")
	s.run(0, "VALID: ", "audit", "verify", place+"?"+parameters, "--key", key)
	s.run(0, "of them new", all...)
	s.run(0, "is disabled", "tenant", "disable", "bank", "--dir", c.dir)
	s.run(0, "tenant bank: ", all...)
}
