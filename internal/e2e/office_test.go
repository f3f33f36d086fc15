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
	here := t.TempDir()
	office, dir := filepath.Join(here, "office"), filepath.Join(here, "week")
	build := exec.Command("go", "build", "-tags", "hashicorpmetrics", "-o", office, "./scripts/office")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	week := exec.Command(office, "-people", "200", "-dir", dir, "-facet", program(), "-photos", original(""))
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
