package e2e

import (
	"os"
	"os/exec"
	"testing"

	"facet/internal/must"
)

// ONNX Runtime keeps what it would report to its maker in a folder of the user's home.
func TestModelsLeaveNothingAtHome(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	cmd := exec.Command(program(), "models", "verify", "default")
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CACHE_HOME=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("facet models verify: %v\n%s", err, out)
	}
	left, err := os.ReadDir(home)
	must.Do(t, err)
	for _, e := range left {
		t.Errorf("%s was left", e.Name())
	}
}
