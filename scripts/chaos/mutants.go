package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// mutantTimeout bounds one attempt to find one planted bug.
const mutantTimeout = 9 * time.Minute

// planted is a bug of internal/mutant and what is to find it: a test, or an attack.
type planted struct {
	name string
	// tests is a package and a pattern of test names; empty for an attack with faults.
	tests [2]string
	// faults are those of the attack.
	faults string
}

// plantedBugs are all of internal/mutant.
var plantedBugs = []planted{
	{name: "ack_before_commit", faults: "pause,kill"},
	{name: "stale_read", tests: [2]string{"./raftfsm", "Read|Leader"}},
	{name: "follower_read", faults: "stop,pause,isolate"},
	{name: "no_term_entry", tests: [2]string{"./raftfsm", "."}},
	{name: "ops_forgotten", faults: "kill,pause,loss"},
	{name: "ops_not_in_snapshot", tests: [2]string{"./raftfsm/fsmtest", "."}},
	{name: "grant_adds", tests: [2]string{"./raftfsm/fsmtest", "."}},
	{name: "reclaim_early", faults: "kill"},
	{name: "skip_dead_shard", faults: "kill,pause"},
	{name: "tags_ignored", faults: "clock"},
	{name: "epoch_ignored", tests: [2]string{"./node", "Grow|Gallery"}},
	{name: "fence_open", tests: [2]string{"./raftfsm/fsmtest", "."}},
	{name: "clock_back", tests: [2]string{"./raftfsm/shardfsm", "."}},
	{name: "torn_vote", tests: [2]string{"./raftfsm", "."}},
	{name: "stale_log", tests: [2]string{"./raftfsm", "."}},
	{name: "seal_ignored", tests: [2]string{"./raftfsm", "."}},
	{name: "stall_ignored", faults: "freeze"},
	{name: "sync_failure_ignored", faults: "bad disk"},
	{name: "no_sync", tests: [2]string{"./raftfsm", "."}},
	{name: "removed_stays", tests: [2]string{"./node", "Join"}},
	{name: "any_tenant", tests: [2]string{"./router", "."}},
}

// mutants builds facet with each planted bug, or with those of only, and prints
// whether something finds it. It fails if one lives.
func mutants(ctx context.Context, s settings, out io.Writer) error {
	var alive []string
	fmt.Fprintf(out, "%-22s %-34s %8s  %s\n", "bug", "found by", "seconds", "how")
	for _, p := range plantedBugs {
		if len(s.only) > 0 && !slices.Contains(s.only, p.name) {
			continue
		}
		began := time.Now()
		by, how, err := p.hunt(ctx, s)
		switch {
		case err != nil:
			alive, how = append(alive, p.name), fmt.Sprintf("not tried: %.300v", err)
		case how == "":
			alive, how = append(alive, p.name), "it lives"
		}
		fmt.Fprintf(out, "%-22s %-34s %8.0f  %s\n", p.name, by, time.Since(began).Seconds(), how)
	}
	if len(alive) > 0 {
		return fmt.Errorf("not found: %s", strings.Join(alive, ", "))
	}
	return nil
}

// hunt tells what should find a bug, and the first line that did, empty if it lives.
func (p planted) hunt(ctx context.Context, s settings) (by, how string, err error) {
	ctx, cancel := context.WithTimeout(ctx, mutantTimeout)
	defer cancel()
	tags := "hashicorpmetrics,mutant,mutant_" + p.name
	if p.tests[0] != "" {
		text, failed := exec.CommandContext(ctx, "go", "test", "-count=1", "-tags", tags, "-run", p.tests[1], p.tests[0]).CombinedOutput()
		by = "go test " + p.tests[0]
		if failed == nil {
			return by, "", ctx.Err()
		}
		for line := range strings.Lines(string(text)) {
			if name, ok := strings.CutPrefix(strings.TrimSpace(line), "--- FAIL: "); ok {
				return by, name, nil
			}
		}
		return by, "", fmt.Errorf("the tests end without a verdict: %.600s", text)
	}
	by = "chaos -faults " + strings.ReplaceAll(p.faults, ",", ", ")
	if s.dir, err = os.MkdirTemp("", "mutant-"); err != nil {
		return by, "", fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(s.dir)
	s.binary = filepath.Join(s.dir, "facet")
	if text, err := exec.CommandContext(ctx, "go", "build", "-tags", "chaos,"+tags, "-o", s.binary, "facet/cmd/facet").CombinedOutput(); err != nil {
		return by, "", fmt.Errorf("build: %w: %s", err, text)
	}
	s.only = strings.Split(p.faults, ",")
	if found := attack(ctx, s, io.Discard); found != nil {
		how, _, _ = strings.Cut(found.Error(), "\n")
	}
	return by, how, nil
}
