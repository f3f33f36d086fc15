package main

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// attackTimeout and testTimeout are the longest that one run of an attack or of
	// tests may take.
	attackTimeout = 9 * time.Minute
	testTimeout   = 2 * time.Minute
)

// patches contains one patch for each bug. The first line of a patch describes the bug.
//
//go:embed mutants/*.patch
var patches embed.FS

// hunter has to find a bug: a set of tests, or an attack on real processes. Its finding
// counts only if it passes with the facet that has no bug.
type hunter struct {
	// tests is a package and run a pattern of test names. An attack has no tests. args
	// are arguments of the test binary.
	tests, run, args string
	// faults are the faults of an attack. rest is the longest pause between two faults.
	faults string
	rest   time.Duration
}

// Hunters of more than one bug.
var (
	world     = hunter{tests: "./scripts/sim", run: "WorldsAreAttacked"}
	fsm       = hunter{tests: "./raftfsm/fsmtest", run: "."}
	signature = hunter{tests: "./node/sigv4", run: "."}
	limits    = hunter{tests: "./node/httpapi", run: "KeepsEachLimit"}
)

// planted is a bug, named after its file in mutants, and its hunter.
type planted struct {
	name string
	by   hunter
}

// plantedBugs lists all files of mutants.
var plantedBugs = []planted{
	{"ack_before_commit", hunter{tests: "./scripts/sim", run: "WorldsAreAttacked", args: "-attack-only kill,isolate -attack-faults 60"}},
	{"follower_read", world},
	{"no_sync", hunter{faults: "power all", rest: 6 * time.Second}},
	{"sync_failure_ignored", hunter{faults: "bad disk"}},
	{"removed_stays", hunter{tests: "./node", run: "JoinsAndLeaves"}},
	{"relay_for_all", hunter{tests: "./node", run: "UnrecordedNode"}},
	{"cut_unnoticed", hunter{tests: "./scripts/sim", run: "CutLinkIsBridged"}},
	{"late_part", hunter{tests: "./node/backup", run: "UnwantedPart"}},
	{"backup_gives_up", hunter{tests: "./scripts/sim", run: "BackupOutlives"}},
	{"ops_forgotten", world},
	{"skip_dead_shard", hunter{tests: "./scripts/sim", run: "MissesAShard"}},
	{"tags_ignored", world},
	{"epoch_ignored", hunter{tests: "./scripts/sim", run: "OldListOfShards"}},
	{"any_tenant", world},
	{"retry_new_shard", world},
	{"old_epoch_enrols", hunter{tests: "./raftfsm/shardfsm", run: "OutdatedEnrolment"}},
	{"reclaim_early", hunter{tests: "./scripts/sim", run: "GalleryIsFilled"}},
	{"revoked_stays", hunter{tests: "./scripts/sim", run: "RevokedKeyIs"}},
	{"wide_window", hunter{tests: "./scripts/sim", run: "SignedRequest"}},
	{"ops_not_in_snapshot", fsm},
	{"quota_restarts", fsm},
	{"grant_adds", fsm},
	{"fence_open", fsm},
	{"clock_in_fsm", fsm},
	{"map_order", fsm},
	{"restore_merges", fsm},
	{"fences_lost", fsm},
	{"update_loses_old", fsm},
	{"clock_back", fsm},
	{"request_ignored", hunter{tests: "./raftfsm/shardfsm", run: "RetryGetsFirstAnswer"}},
	{"stale_read", hunter{tests: "./raftfsm", run: "NonvotersDoNotConfirm"}},
	{"no_term_entry", hunter{tests: "./raftfsm", run: "ReadIndexWaits", args: "-test.timeout 30s"}},
	{"torn_vote", hunter{tests: "./raftfsm/logstore", run: "PowerCut"}},
	{"stale_log", hunter{tests: "./raftfsm/snapshots", run: "Reconcile"}},
	{"seal_ignored", hunter{tests: "./raftfsm/logstore", run: "Seal|Flipped"}},
	{"short_lease", hunter{tests: "./scripts/sim", run: "FarNodesFound"}},
	{"silence_ignored", hunter{tests: "./scripts/sim", run: "SilentLeaders"}},
	{"stall_ignored", hunter{tests: "./raftfsm", run: "StalledLeader"}},
	{"older_state_votes", hunter{tests: "./node", run: "RolledBackVoter"}},
	{"lost_answers_count", hunter{tests: "./raftfsm", run: "FellBehind"}},
	{"unsigned_header", signature},
	{"body_ignored", signature},
	{"foreign_gallery", world},
	{"few_faces", limits},
	{"short_search", limits},
	{"short_extract", limits},
	{"many_tags", limits},
	{"slow_timeout", hunter{tests: "./scripts/sim", run: "TimesOutAfter30"}},
	{"lost_part_votes", hunter{tests: "./raftfsm", run: "WithoutSnapshots"}},
	{"committed_cut", hunter{tests: "./raftfsm", run: "RewrittenHistory"}},
	{"copy_in_place", hunter{tests: "./node", run: "CopiedNodeNever"}},
	{"copy_counts_itself", hunter{tests: "./node/holder", run: "NeverBothLead"}},
}

// hunt runs hunters in one temporary folder.
type hunt struct {
	settings
	dir string
	top string // folder of the working tree
}

// mutants plants each bug, or only those named in only, and runs the bug's hunter. It
// prints the results as rows of a Markdown table. It returns an error if a hunter
// misses its bug, or fails with the facet that has no bug.
func mutants(ctx context.Context, s settings, out io.Writer) error {
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(dir)
	top, err := workingTree(ctx)
	if err != nil {
		return err
	}
	all := &hunt{settings: s, dir: dir, top: top}
	var alive []string
	baseline := map[hunter]error{} // results of hunters without a bug
	fmt.Fprintln(out, "| Bug | Found by | Without it | Seconds | How |\n|---|---|---|---|---|")
	for _, p := range plantedBugs {
		if len(s.only) > 0 && !slices.Contains(s.only, p.name) {
			continue
		}
		without := "not run"
		if s.baseline || p.by.tests == "" {
			if _, tried := baseline[p.by]; !tried {
				baseline[p.by] = all.baseline(ctx, p.by)
			}
			without = "passes"
		}
		row := func(green, seconds, how string) {
			fmt.Fprintf(out, "| %s | %s | %s | %s | %s |\n", p.name, p.by, green, seconds, strings.ReplaceAll(how, "|", "/"))
		}
		if err := baseline[p.by]; err != nil {
			alive = append(alive, p.name)
			row("**fails**", "", fmt.Sprintf("not tried: %.300v", err))
			continue
		}
		start := time.Now()
		how, err := all.of(ctx, p.by, p.name)
		if err == nil && how == "" {
			all.seed++ // attacks draw their faults at random
			how, err = all.of(ctx, p.by, p.name)
		}
		switch {
		case err != nil:
			alive, how = append(alive, p.name), fmt.Sprintf("not tried: %.300v", err)
		case how == "":
			alive, how = append(alive, p.name), "**it lives**"
		}
		row(without, fmt.Sprintf("%.0f", time.Since(start).Seconds()), how)
	}
	if len(alive) > 0 {
		return fmt.Errorf("not found: %s", strings.Join(alive, ", "))
	}
	return nil
}

// workingTree returns the folder of the product's module.
func workingTree(ctx context.Context) (string, error) {
	top, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "facet").Output()
	if err != nil {
		return "", fmt.Errorf("find the working tree: %w", err)
	}
	return strings.TrimSpace(string(top)), nil
}

// plant applies a bug's patch to copies of the files that it changes, in dir. It returns
// the names of the files, relative to top, and a file for go build's -overlay.
func plant(ctx context.Context, top, dir, bug string) (files []string, overlay string, err error) {
	patch, err := patches.ReadFile(path.Join("mutants", bug+".patch"))
	if err != nil {
		return nil, "", err
	}
	replace := map[string]string{}
	for line := range strings.Lines(string(patch)) {
		name, changed := strings.CutPrefix(strings.TrimSpace(line), "+++ b/")
		if !changed {
			continue
		}
		text, err := os.ReadFile(filepath.Join(top, name))
		if err != nil {
			return nil, "", err
		}
		planted := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(planted), 0o700), os.WriteFile(planted, text, 0o600)); err != nil {
			return nil, "", err
		}
		files, replace[filepath.Join(top, name)] = append(files, name), planted
	}
	apply := exec.CommandContext(ctx, "git", "apply", "--whitespace=nowarn", "-")
	apply.Dir, apply.Stdin = dir, bytes.NewReader(patch)
	apply.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	if text, err := apply.CombinedOutput(); err != nil {
		return nil, "", fmt.Errorf("plant %s: %w: %s", bug, err, text)
	}
	raw, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return files, overlay, os.WriteFile(overlay, raw, 0o600)
}

// String describes the hunter for people.
func (h hunter) String() string {
	if h.tests == "" {
		return "attack with " + strings.ReplaceAll(h.faults, ",", ", ")
	}
	return strings.TrimSpace(fmt.Sprintf("`go test %s -run '%s' %s`", h.tests, strings.ReplaceAll(h.run, "|", "\\|"), h.args))
}

// baseline returns an error if a hunter fails with the facet that has no bug.
func (a *hunt) baseline(ctx context.Context, h hunter) error {
	how, err := a.of(ctx, h, "")
	if err == nil && how != "" {
		err = errors.New(how)
	}
	return err
}

// of runs a hunter with a bug, or without one if bug is empty. It returns the first
// line of the hunter's finding, or an empty string if the hunter found nothing.
func (a *hunt) of(ctx context.Context, h hunter, bug string) (how string, err error) {
	dir, err := os.MkdirTemp(a.dir, "hunt-")
	if err != nil {
		return "", fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "binary")
	args := []string{"-tags", "hashicorpmetrics", "-o", binary}
	if bug != "" {
		_, overlay, err := plant(ctx, a.top, filepath.Join(dir, "planted"), bug)
		if err != nil {
			return "", err
		}
		args = append(args, "-overlay", overlay)
	}
	if h.tests != "" {
		if err := a.build(ctx, append([]string{"test", "-c"}, append(args, h.tests)...)...); err != nil {
			return "", err
		}
		return a.test(ctx, h, binary)
	}
	args[1] = "chaos,hashicorpmetrics"
	if err := a.build(ctx, append([]string{"build"}, append(args, "./cmd/facet")...)...); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, attackTimeout)
	defer cancel()
	s := a.settings
	s.binary, s.dir, s.only, s.rest = binary, dir, strings.Split(h.faults, ","), h.rest
	if found := attack(ctx, s, io.Discard); found != nil {
		how, _, _ = strings.Cut(found.Error(), "\n")
		how, _, _ = strings.Cut(how, " ("+s.dir)
		how, _, _ = strings.Cut(how, ": see "+s.dir)
		how = fmt.Sprintf("%.160s", how)
	}
	return how, ctx.Err()
}

// build runs the go command in the working tree.
func (a *hunt) build(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = a.top
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, text)
	}
	return nil
}

// test runs a hunter's tests.
func (a *hunt) test(ctx context.Context, h hunter, binary string) (how string, err error) {
	cmd := exec.CommandContext(ctx, binary, append([]string{"-test.run", h.run, "-test.timeout", testTimeout.String()}, strings.Fields(h.args)...)...)
	cmd.Dir = filepath.Join(a.top, h.tests)
	text, failed := cmd.CombinedOutput()
	if failed == nil || ctx.Err() != nil {
		return "", ctx.Err()
	}
	fallen, test := "", ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if test != "" {
			return fmt.Sprintf("%s: %.160s", test, line), nil
		}
		if name, ok := strings.CutPrefix(line, "--- FAIL: "); ok {
			test, _, _ = strings.Cut(name, " (")
			continue
		}
		if strings.HasPrefix(line, "panic: ") && fallen == "" {
			fallen = fmt.Sprintf("%.160s", line)
		}
	}
	if test != "" {
		return test, nil
	}
	if strings.Contains(fallen, "test timed out") {
		return "it does not end in time", nil
	}
	if fallen != "" {
		return fallen, nil
	}
	return "", fmt.Errorf("the tests end without a verdict: %.600s", text)
}
