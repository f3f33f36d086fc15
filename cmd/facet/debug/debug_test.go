package debug

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"facet/cmd/facet/admin"
	"facet/cmd/facet/doctor"
	"facet/internal/must"
	"facet/node/nodetest"
)

// The caller has a status certificate, and one of the nodes does not run.
func TestWhatCantBeReadIsListed(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 1, Shards: 1}, func(t *testing.T, c *nodetest.Cluster) {
		dir := t.TempDir()
		in := func(name string) string { return filepath.Join(dir, name) }
		pair, err := c.Authority.IssueStatus(c.Nodes[0].Node.ID())
		must.Do(t, err)
		must.Do(t, pair.Save(in("status.pem"), in("status.key")))
		must.Do(t, os.WriteFile(in("ca.pem"), c.Authority.CertPEM(), 0o600))
		collect := func(addresses ...string) (*Bundle, error) {
			t.Helper()
			client, err := admin.NewClient(admin.Target{Addresses: addresses, Certificates: dir})
			must.Do(t, err)
			return Collect(admin.WithDialer(t.Context(), c.Dial), doctor.Config{Client: client})
		}
		const nobody = "10.0.9.9:1"
		b, err := collect(c.Nodes[0].Config.AdminAddress, nobody)
		must.Do(t, err)
		all := strings.Join(b.Manifest.Missing, "\n")
		if refused := strings.Count(all, "this needs the cluster's admin certificate"); refused != 7 || strings.Count(all, "10.0.9.9-1/") != 1 {
			t.Errorf("missing:\n%s", all)
		}
		var names []string
		for _, f := range b.Manifest.Files {
			names = append(names, filepath.Base(f.Name))
		}
		if got := strings.Join(names, " "); got != "plan.json status.json doctor.json metrics.txt ready.json" {
			t.Errorf("files: %s", got)
		}
		if err := b.WriteFile(in("status.key")); err == nil {
			t.Error("a file was overwritten")
		}
		if _, err := collect(nobody); err == nil || !strings.Contains(err.Error(), "no node answers") {
			t.Errorf("no node: %v", err)
		}
	})
}

func TestAccessKeysAreScrubbed(t *testing.T) {
	t.Parallel()
	const line = `{"msg":"access key made","key":"FACETGJFUWSlohMZbPyh"}`
	if got := string(scrub([]byte(line + "FACET_PROFILE"))); strings.Contains(got, "GJFUWS") || !strings.HasSuffix(got, "FACET_PROFILE") {
		t.Error(got)
	}
}
