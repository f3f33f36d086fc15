package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"facet/internal/mutant"
)

const (
	// attackTimeout and testTimeout bound one attempt of one hunter.
	attackTimeout = 9 * time.Minute
	testTimeout   = 2 * time.Minute
)

// hunter is what is to find a bug: tests, or an attack on real processes. It counts
// only if it is content with the facet that has no bug.
type hunter struct {
	// tests is a package and run a pattern of test names; empty for an attack. args are
	// for the test binary.
	tests, run, args string
	// faults are those of the attack, and rest is the longest pause between them.
	faults string
	rest   time.Duration
}

// The hunters that more than one bug has.
var (
	world     = hunter{tests: "./scripts/sim", run: "WorldsAreAttacked"}
	fsm       = hunter{tests: "./raftfsm/fsmtest", run: "."}
	signature = hunter{tests: "./node/sigv4", run: "."}
)

// planted is a bug of internal/mutant and its hunter.
type planted struct {
	name string
	by   hunter
}

// plantedBugs are all of internal/mutant.
var plantedBugs = []planted{
	{"ack_before_commit", hunter{tests: "./scripts/sim", run: "WorldsAreAttacked", args: "-attack-only kill,isolate -attack-faults 60"}},
	{"follower_read", world},
	{"no_sync", hunter{faults: "power all", rest: 6 * time.Second}},
	{"sync_failure_ignored", hunter{faults: "bad disk"}},
	{"removed_stays", hunter{tests: "./node", run: "JoinsAndLeaves"}},
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
	{"no_term_entry", hunter{tests: "./raftfsm", run: "ReadIndexWaits"}},
	{"torn_vote", hunter{tests: "./raftfsm/logstore", run: "PowerCut"}},
	{"stale_log", hunter{tests: "./raftfsm/snapshots", run: "Reconcile"}},
	{"seal_ignored", hunter{tests: "./raftfsm/logstore", run: "Seal|Flipped"}},
	{"stall_ignored", hunter{tests: "./raftfsm", run: "StalledLeader"}},
	{"unsigned_header", signature},
	{"body_ignored", signature},
	{"foreign_gallery", world},
}

// hunt is one run of the hunters.
type hunt struct {
	settings
	dir   string
	built map[string]string // binaries by package
}

// mutants shows whether the hunter of each planted bug, or of those of only, finds it
// and is content without it, as rows of a Markdown table. It fails if one lives.
func mutants(ctx context.Context, s settings, out io.Writer) error {
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(dir)
	all := &hunt{settings: s, dir: dir, built: map[string]string{}}
	var alive []string
	sober := map[hunter]error{} // what hunters say of the facet without a bug
	fmt.Fprintln(out, "| Bug | Found by | Without it | Seconds | How |\n|---|---|---|---|---|")
	for _, p := range plantedBugs {
		if len(s.only) > 0 && !slices.Contains(s.only, p.name) {
			continue
		}
		if _, tried := sober[p.by]; !tried {
			sober[p.by] = all.sober(ctx, p.by)
		}
		row := func(green, seconds, how string) {
			fmt.Fprintf(out, "| %s | %s | %s | %s | %s |\n", p.name, p.by, green, seconds, strings.ReplaceAll(how, "|", "/"))
		}
		if err := sober[p.by]; err != nil {
			alive = append(alive, p.name)
			row("**fails**", "", fmt.Sprintf("not tried: %.300v", err))
			continue
		}
		began := time.Now()
		how, err := all.of(ctx, p.by, p.name)
		switch {
		case err != nil:
			alive, how = append(alive, p.name), fmt.Sprintf("not tried: %.300v", err)
		case how == "":
			alive, how = append(alive, p.name), "**it lives**"
		}
		row("passes", fmt.Sprintf("%.0f", time.Since(began).Seconds()), how)
	}
	if len(alive) > 0 {
		return fmt.Errorf("not found: %s", strings.Join(alive, ", "))
	}
	return nil
}

// String is the hunter as people would call it.
func (h hunter) String() string {
	if h.tests == "" {
		return "attack with " + strings.ReplaceAll(h.faults, ",", ", ")
	}
	return strings.TrimSpace(fmt.Sprintf("`go test %s -run '%s' %s`", h.tests, strings.ReplaceAll(h.run, "|", "\\|"), h.args))
}

// sober is an error if a hunter finds something where there is nothing.
func (a *hunt) sober(ctx context.Context, h hunter) error {
	how, err := a.of(ctx, h, "")
	if err == nil && how != "" {
		err = errors.New(how)
	}
	return err
}

// of gives the first line of a hunter that tells of a bug, empty if it is content. bug
// is empty for none.
func (a *hunt) of(ctx context.Context, h hunter, bug string) (how string, err error) {
	if err := os.Setenv(mutant.Variable, bug); err != nil { // for what is started from here
		return "", fmt.Errorf("plant %s: %w", bug, err)
	}
	if h.tests != "" {
		return a.test(ctx, h)
	}
	s := a.settings
	if s.binary, err = a.build(ctx, "./cmd/facet", "build", "-tags", "chaos,mutant,hashicorpmetrics"); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, attackTimeout)
	defer cancel()
	if s.dir, err = os.MkdirTemp(a.dir, "attack-"); err != nil {
		return "", fmt.Errorf("make a folder: %w", err)
	}
	s.only, s.rest = strings.Split(h.faults, ","), h.rest
	if found := attack(ctx, s, io.Discard); found != nil {
		how, _, _ = strings.Cut(found.Error(), "\n")
		how, _, _ = strings.Cut(how, " ("+s.dir)
		how, _, _ = strings.Cut(how, ": see "+s.dir)
		how = fmt.Sprintf("%.160s", how)
	}
	return how, ctx.Err()
}

// build builds a package once, with bugs that can be planted.
func (a *hunt) build(ctx context.Context, pkg string, args ...string) (path string, err error) {
	if path, ok := a.built[pkg]; ok {
		return path, nil
	}
	path = filepath.Join(a.dir, strings.ReplaceAll(strings.TrimPrefix(pkg, "./"), "/", "-"))
	if text, err := exec.CommandContext(ctx, "go", append(args, "-o", path, pkg)...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w: %s", pkg, err, text)
	}
	a.built[pkg] = path
	return path, nil
}

// test runs a hunter's tests.
func (a *hunt) test(ctx context.Context, h hunter) (how string, err error) {
	path, err := a.build(ctx, h.tests, "test", "-c", "-tags", "mutant,hashicorpmetrics")
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, path, append([]string{"-test.run", h.run, "-test.timeout", testTimeout.String()}, strings.Fields(h.args)...)...)
	cmd.Dir = h.tests
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
		return "it does not end within " + testTimeout.String(), nil
	}
	if fallen != "" {
		return fallen, nil
	}
	return "", fmt.Errorf("the tests end without a verdict: %.600s", text)
}
