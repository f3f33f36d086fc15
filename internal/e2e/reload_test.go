package e2e

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"facet/internal/must"
	"facet/internal/testkit/launch"
)

// A service takes changed settings over on SIGHUP, keeps all when one is wrong, and says what waits
// for its next start. SIGHUP does not end a node that is starting.
func TestServiceTakesSettingsOverOnHangup(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "facet.yaml")
	write := func(text string) {
		put(t, "", file, []byte(text))
	}
	write("log-level: info\nhealth: signed\n")
	c := serve(t, program(), 1, 1, "--config", file)
	n := c.nodes[0]
	browser := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	unsigned := func(path string) int {
		r, err := browser.Get(n.URL() + path)
		must.Do(t, err)
		r.Body.Close()
		return r.StatusCode
	}
	reload := func(text, want string) {
		t.Helper()
		before := read(t, n.Log)
		write(text)
		n.Signal(syscall.SIGHUP)
		waitFor(t, n, func() bool {
			b, err := os.ReadFile(n.Log)
			return err == nil && strings.Contains(string(b[len(before):]), want)
		})
	}
	health := func(want int) {
		t.Helper()
		if got := unsigned("/v1.1/health"); got != want {
			t.Errorf("health without a signature: %d, want %d", got, want)
		}
	}
	health(http.StatusForbidden)
	reload("log-level: info\nhealth: open\nconsole: \"off\"\nworkers: 1\n", "settings=[workers]")
	health(http.StatusOK)
	if got := unsigned("/console/"); got != http.StatusForbidden {
		t.Errorf("the console answers %d after it was switched off", got)
	}
	reload("log-level: debug\nhealth: closed\ncors: https://example.org\n", `health is signed or open, not \"closed\"`)
	health(http.StatusOK) // none is taken over
	reload("log-level: debug\nhealth: signed\n", "changed=\"[health console log-level]\"")
	health(http.StatusForbidden)
	if !strings.Contains(launch.Tail(n.Log), "level=DEBUG") {
		t.Error("no request is logged at level debug")
	}
	if got := unsigned("/console/"); got != http.StatusOK {
		t.Errorf("the console answers %d after its setting was taken away", got)
	}

	// systemd sends SIGHUP as soon as the process runs, and a node may start for minutes.
	n.Signal(syscall.SIGTERM)
	begun := filepath.Join(c.Dir, "begun")
	at := slices.Index(n.Args, "--cluster-key")
	n.Args[at], n.Args[at+1] = "--cluster-key-command", "/bin/sh,-c,touch "+begun+"; sleep 1; cat "+n.Args[at+1]
	c.start(t, n)
	waitFor(t, n, func() bool { _, err := os.Stat(begun); return err == nil })
	reload("log-level: debug\nhealth: open\n", "changed=[health]")
}

// waitFor waits until done, while the node runs.
func waitFor(t *testing.T, n *launch.Node, done func() bool) {
	t.Helper()
	within(t, "the node does it", func() error {
		if n.Ended() {
			t.Fatalf("the node has ended:\n%s", launch.Tail(n.Log))
		}
		if !done() {
			return fmt.Errorf("the log ends\n%s", launch.Tail(n.Log))
		}
		return nil
	})
}
