package e2e

import (
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"facet/internal/testkit"
)

const (
	scheduleEvery = 2 * time.Second
	scheduleKeep  = 2
)

// finished returns the names of the finished backups in a folder, and when they
// were made.
func (c *served) finished(t *testing.T, url string) (names []string, made map[string]time.Time) {
	t.Helper()
	made = map[string]time.Time{}
	for line := range strings.Lines(c.facet(t, append([]string{"backup", "list", url}, c.where()...)...)) {
		f := strings.Fields(line)
		if len(f) < 4 || f[0] == "NAME" {
			continue
		}
		at, err := time.Parse(time.RFC3339, f[1])
		if err != nil {
			t.Fatalf("backup list says %q", line)
		}
		names = append(names, f[0])
		made[f[0]] = at
	}
	return names, made
}

// metric returns the greatest value of a metric without labels on the running nodes.
func (c *served) metric(t *testing.T, name string) (most float64) {
	t.Helper()
	for _, n := range c.running() {
		f, err := testkit.Scrape(t.Context(), n.Admin())
		v, found := f[name]
		if err != nil || !found {
			t.Fatalf("%s has no %s: %v", n.Name, name, err)
		}
		most = max(most, v)
	}
	return most
}

// facetStatus waits until facet status ends with an exit status and a text.
func facetStatus(t *testing.T, where []string, want int, text string) {
	t.Helper()
	within(t, fmt.Sprintf("facet status ends with %d and %q", want, text), func() error {
		out, err := facet(append([]string{"status"}, where...)...)
		code := 0
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			code = exit.ExitCode()
		}
		if code != want || !strings.Contains(out, text) {
			return fmt.Errorf("it ends with %d:\n%s", code, out)
		}
		return nil
	})
}

// warnedOfNothing checks that the nodes serve and have logged no warning and no error; that a busy machine was slow
// is none.
func (c *served) warnedOfNothing(t *testing.T) {
	t.Helper()
	for _, n := range c.nodes {
		b := read(t, n.Log)
		if !strings.Contains(string(b), "level=INFO msg=serving") {
			t.Errorf("%s does not say that it serves:\n%s", n.Name, b)
		}
		for line := range strings.Lines(string(b)) {
			slow := strings.Contains(line, `level=WARN msg="slow `) || strings.Contains(line, `err="TLS handshake: EOF"`)
			warned := strings.Contains(line, "level=WARN") && !slow
			if warned || strings.Contains(line, "level=ERROR") {
				t.Errorf("%s: %s", n.Name, line)
			}
		}
	}
}

// A first start warns of nothing: a line of level WARN or ERROR wants somebody to look. A schedule with intervals of
// seconds then survives the death of the node that makes the backups, and keeps the newest; the metrics show the
// newest. The exit status of facet status tells how many nodes are left.
func TestScheduleSurvivesLeader(t *testing.T) {
	t.Parallel()
	url := "file://" + t.TempDir()
	c := serve(t, program(), 3, 4, "--backup-to", url, "--backup-every", scheduleEvery.String(), "--backup-keep", strconv.Itoa(scheduleKeep))
	facetStatus(t, c.where(), 0, "no warnings")
	k := c.client(t, 100)
	k.register(t, 0, obama)
	c.facet(t, append([]string{"backup", "--to", url, "--name", "by-hand"}, c.where()...)...)
	seen := map[string]time.Time{}
	watch := func(what string, until func(names []string) bool) {
		t.Helper()
		within(t, what, func() error {
			names, made := c.finished(t, url)
			if !slices.Contains(names, "by-hand") {
				t.Fatalf("%s: the backup that was made by hand was removed", what)
			}
			// The oldest backup is removed only when the newest is complete.
			if len(names)-1 > scheduleKeep+1 {
				t.Fatalf("%s: %v are there", what, names)
			}
			delete(made, "by-hand")
			maps.Copy(seen, made)
			if !until(names) {
				return fmt.Errorf("%v are there", names)
			}
			return nil
		})
	}
	watch("the backup behind those that are kept", func([]string) bool { return len(seen) > scheduleKeep })
	c.warnedOfNothing(t) // leaderships have gone to their places since
	before := len(seen)
	maker := c.leader(t, 0)
	maker.Signal(syscall.SIGKILL)
	watch("backups after the leader's death", func([]string) bool { return len(seen) >= before+2 })
	facetStatus(t, c.where(), 3, "! node "+maker.Name+" does not answer\n")
	watch("the removal of the oldest", func(names []string) bool { return len(names) == scheduleKeep+1 })
	times := slices.SortedFunc(maps.Values(seen), time.Time.Compare)
	before = len(times) - 2 // the leader may not have looked since the newest
	if last, every := c.metric(t, "facet_backup_last_timestamp_seconds"), c.metric(t, "facet_backup_interval_seconds"); last < float64(times[before].Unix()) ||
		every != scheduleEvery.Seconds() {
		t.Errorf("the metrics say: last backup at %f, every %f s; want %s, or later", last, every, times[before])
	}
	for i, at := range times[1:] {
		if gap := at.Sub(times[i]); gap < scheduleEvery-time.Second { // the list has whole seconds
			t.Errorf("two backups within %s", gap)
		}
	}
	if out, err := facet(append([]string{"backup", "verify", url}, c.where()...)...); err != nil || !strings.Contains(out, "1 events") {
		t.Errorf("the newest backup: %v: %s", err, out)
	}
	all := c.where()
	for _, n := range c.running() {
		want := "have no leader that answers"
		if n.Signal(syscall.SIGKILL); len(c.where()[1]) == 0 {
			want = "facet: "
		}
		facetStatus(t, all, 4, want)
	}
}
