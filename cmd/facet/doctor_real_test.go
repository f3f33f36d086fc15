package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"facet/cmd/facet/cli"
	"facet/cmd/facet/doctor"
	"facet/internal/must"
)

// examination runs facet doctor and checks that its exit status fits its findings.
func examination(t *testing.T, args ...string) doctor.Report {
	t.Helper()
	cmd := command(t, append([]string{"doctor", "-o", "json"}, args...)...)
	out, _ := cmd.Output() // the exit status tells
	var r doctor.Report
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("doctor %v: %v: %s", args, err, out)
	}
	want := map[doctor.Level]int{doctor.OK: 0, doctor.Warning: cli.ExitWarned, doctor.Problem: cli.ExitFailed}[r.Worst()]
	if got := cmd.ProcessState.ExitCode(); got != want {
		t.Errorf("doctor %v ends with %d, want %d: %s", args, got, want, out)
	}
	return r
}

// says checks that a report has a finding.
func says(t *testing.T, r doctor.Report, level doctor.Level, check, text string) {
	t.Helper()
	for _, f := range r.Findings {
		if f.Level == level && f.Check == check && strings.Contains(f.Text+": "+f.Do, text) {
			return
		}
	}
	t.Errorf("no %s of %s with %q in %+v", level, check, text, r.Findings)
}

// The test examines a machine before its node runs, while it runs, while it hangs, and after its
// death, when another process has its port.
func TestDoctorFollowsNode(t *testing.T) {
	t.Parallel()
	m := some(t, 1)
	m.init(t, "--shards", "1")
	settings := []string{"--config", filepath.Join(m.folder(0), "facet.yaml")}

	r := examination(t, settings...)
	says(t, r, doctor.OK, "cluster", "the node does not run")
	says(t, r, doctor.OK, "ports", "TCP is free")
	if r.Worst() == doctor.Problem {
		t.Errorf("before the start: %+v", r.Findings)
	}

	says(t, r, doctor.OK, "next", "the nearest limits")
	aside := m.profile + ".aside"
	for _, step := range []struct{ from, to string }{{m.profile, aside}, {aside, m.profile}} {
		must.Do(t, os.Rename(step.from, step.to))
		if step.to == aside { // nobody names a cluster
			if r := examination(t, settings...); r.Worst() == doctor.Problem {
				t.Errorf("without a profile: %+v", r.Findings)
			}
			says(t, examination(t, append(settings, "--profile", m.profile)...), doctor.Problem, "cluster", "there is no profile")
		}
	}

	m.start(t, 0)
	until(t, func() (string, bool) { // it serves, alone
		cmd := command(t, "status", "--profile", m.profile)
		err := cmd.Run()
		return fmt.Sprint(err), cmd.ProcessState.ExitCode() == cli.ExitWarned
	})
	r = examination(t, settings...)
	says(t, r, doctor.OK, "ports", fmt.Sprintf("is the running node's (process %d)", m.process[0].Process.Pid))
	says(t, r, doctor.OK, "versions", "all nodes run")
	says(t, r, doctor.OK, "clocks", "")
	says(t, r, doctor.Warning, "cluster", "there is one node")
	says(t, r, doctor.Warning, "replicas", "should have 3 replicas, and there are 1 nodes")
	says(t, r, doctor.OK, "next", "the first one first: quorum")
	if r.Worst() == doctor.Problem {
		t.Errorf("while it runs: %+v", r.Findings)
	}
	says(t, examination(t, "--profile", m.profile), doctor.OK, "clocks", "")

	must.Do(t, m.process[0].Process.Signal(syscall.SIGSTOP))
	begin := time.Now()
	says(t, examination(t, settings...), doctor.Problem, "cluster", "no node answers")
	if took := time.Since(begin); took > time.Minute {
		t.Errorf("a hanging node keeps the doctor for %v", took)
	}
	must.Do(t, m.process[0].Process.Kill())
	_ = m.process[0].Wait()
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", m.ports[0]))
	must.Do(t, err)
	defer l.Close()
	says(t, examination(t, settings...), doctor.Problem, "ports", fmt.Sprintf("is taken by process %d", os.Getpid()))
	says(t, examination(t, "--profile", m.profile), doctor.Problem, "cluster", "no node answers")
	must.Do(t, os.WriteFile(settings[1], []byte("wrokers: 2\n"), 0o600))
	says(t, examination(t, settings...), doctor.Problem, "settings", `there is no setting "wrokers"`)
}
