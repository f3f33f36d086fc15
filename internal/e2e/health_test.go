package e2e

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Three nodes serve; with two of them the cluster warns, with one or none it is broken.
func TestStatusExitTellsHealth(t *testing.T) {
	c := serve(t, program(), 3, 4)
	all := c.where()
	f := func(want int, text string) {
		t.Helper()
		var out string
		code := 0
		for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			var err error
			out, err = facet(append([]string{"status"}, all...)...)
			code = 0
			if exit, ok := errors.AsType[exitCoder](err); ok {
				code = exit.ExitCode()
			}
			if code == want && strings.Contains(out, text) {
				return
			}
		}
		t.Fatalf("facet status ends with %d, want %d and %q:\n%s", code, want, text, out)
	}
	f(0, "no warnings")
	c.nodes[0].end(syscall.SIGKILL)
	f(3, "! node n1 does not answer\n")
	c.nodes[1].end(syscall.SIGKILL)
	f(4, "have no leader that answers")
	c.nodes[2].end(syscall.SIGKILL)
	f(4, "facet: ")
}
