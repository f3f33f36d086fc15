package e2e

import (
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	scheduleEvery = 3 * time.Second
	scheduleKeep  = 3
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
	for _, n := range c.nodes {
		if n.cmd == nil {
			continue
		}
		out, err := exec.Command("curl", "-sk", "--fail", "https://"+n.admin+"/metrics").Output()
		if err != nil {
			t.Fatalf("metrics of %s: %v", n.name, err)
		}
		_, value, found := strings.Cut(string(out), "\n"+name+" ")
		value, _, _ = strings.Cut(value, "\n")
		v, err := strconv.ParseFloat(value, 64)
		if !found || err != nil {
			t.Fatalf("%s has no %s: %v", n.name, name, err)
		}
		most = max(most, v)
	}
	return most
}

// A schedule with intervals of seconds runs on real processes. The node that makes
// the backups is killed, and the newest backups are kept. The metrics show the newest.
func TestScheduleSurvivesLeader(t *testing.T) {
	url := "file://" + t.TempDir()
	c := serve(t, program(), 3, 1, "--backup-to", url, "--backup-every", scheduleEvery.String(), "--backup-keep", "3")
	k := c.client(t, 100)
	k.register(t, 0, obama)
	c.facet(t, append([]string{"backup", "--to", url, "--name", "by-hand"}, c.where()...)...)
	seen := map[string]time.Time{}
	watch := func(what string, until func(names []string) bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(300 * time.Millisecond) {
			names, made := c.finished(t, url)
			if !slices.Contains(names, "by-hand") {
				t.Fatalf("%s: the backup that was made by hand was removed", what)
			}
			// The oldest backup is removed only when the newest is complete.
			if len(names)-1 > scheduleKeep+1 {
				t.Fatalf("%s: %v are there", what, names)
			}
			for name, at := range made {
				if name != "by-hand" {
					seen[name] = at
				}
			}
			if until(names) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s does not come: %v", what, names)
			}
		}
	}
	watch("the fourth backup", func([]string) bool { return len(seen) >= 4 })
	before := len(seen)
	c.leader(t, 0).end(syscall.SIGKILL)
	killed := time.Now()
	watch("a backup after the leader's death", func([]string) bool { return len(seen) >= before+3 })
	t.Logf("three more backups within %s of the kill", time.Since(killed).Round(time.Second))
	watch("the removal of the oldest", func(names []string) bool { return len(names) == scheduleKeep+1 })
	var times []time.Time
	for _, at := range seen {
		times = append(times, at)
	}
	slices.SortFunc(times, time.Time.Compare)
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
}
