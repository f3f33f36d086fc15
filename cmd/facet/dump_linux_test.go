package main

import (
	"fmt"
	"os"
	"regexp"
	"testing"
)

// Where no process may dump core, it shows nothing.
func TestAuthorityCommandsDumpNoCore(t *testing.T) {
	t.Parallel()
	d := onTerminal(t, append([]string{"cluster", "init"}, some(t, 1).flags(t, 0)...)...)
	d.expect(t, "new passphrase for")
	limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", d.cmd.Process.Pid))
	if err != nil || !regexp.MustCompile(`Max core file size +0 +0 `).Match(limits) {
		t.Errorf("%v:\n%s", err, limits)
	}
}
