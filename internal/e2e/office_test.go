//go:build long

package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The week checks each of its numbers itself.
func TestOfficeWeekCountsEveryMember(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "week")
	week := exec.Command(filepath.Join("assets", "venv", "bin", "python"), "scripts/office.py", "--people", "200", "--dir", dir, "--facet", program(), "--photos", original(""))
	week.Dir = root
	out, err := week.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, sentence := range []string{"kill -9", "✓ rows that are in: 197\n", "✓ photos in the export: 196\n", "the visitor is gone", "Every number is as it was put in"} {
		if !strings.Contains(string(out), sentence) {
			t.Errorf("the story lacks %q:\n%s", sentence, out)
		}
	}
	wantStopped(t, filepath.Join(dir, "dev"))
}
