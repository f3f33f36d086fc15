package node_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"facet/internal/must"
	"facet/node/nodetest"
	"facet/node/wire"
)

// The test takes profiles as docs/operations.md shows it.
func TestPprofToolReadsProfiles(t *testing.T) {
	t.Parallel()
	c := nodetest.Start(t, nodetest.Options{Nodes: 1, Shards: 1})
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	pair, err := c.Authority.IssueAdmin("root")
	if err == nil {
		err = pair.Save(in("admin.pem"), in("admin.key"))
	}
	must.Do(t, err)
	for path, want := range map[string]string{
		"heap": "inuse_space", "allocs": "alloc_space", "goroutine": "runtime.gopark", "mutex?seconds=1": "delay", "block?seconds=1": "delay",
		"profile?seconds=1": "Type: cpu", "threadcreate": "threadcreate",
	} {
		fetch := exec.CommandContext(t.Context(), "curl", "--silent", "--show-error", "--fail", "--insecure", "--cert", in("admin.pem"), "--key", in("admin.key"),
			"--output", in("profile.pprof"), "https://"+c.Nodes[0].Config.AdminAddress+wire.PathProfiles+path)
		if out, err := fetch.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", path, err, out)
			continue
		}
		out, err := exec.CommandContext(t.Context(), "go", "tool", "pprof", "-top", in("profile.pprof")).CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v, want %q: %s", path, err, want, out)
		}
	}
}
