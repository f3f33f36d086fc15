package main

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// attackTimeout and testTimeout are the longest that one run of an attack or of
	// tests may take.
	attackTimeout = 9 * time.Minute
	testTimeout   = 10 * time.Minute
)

// patches contains one patch for each bug. The first line of a patch describes the bug.
//
//go:embed mutants/*.patch
var patches embed.FS

// hunter has to find a bug: a set of tests, an attack on real processes, or a part of
// make attack. Its finding counts only if it passes with the facet that has no bug.
type hunter struct {
	// tests is a package and run a pattern of test names. An attack has no tests. args
	// are arguments of the test binary.
	tests, run, args string
	// intrusion is a kind of scripts/attack.
	intrusion string
	// faults are the faults of an attack. rest is the longest pause between two faults.
	faults string
	rest   time.Duration
	// audit is the setting of an attack.
	audit string
}

// Hunters of more than one bug.
var (
	world     = hunter{tests: "./scripts/sim", run: "WorldsAreAttacked", args: "-attack-faults 40"}
	crashes   = hunter{tests: "./scripts/sim", run: "WorldsAreAttacked", args: "-attack-only kill,stop -attack-faults 12 -attack-workers 3 -attack-pace 300ms"}
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
	{"sync_failure_ignored", hunter{tests: "./raftfsm", run: "FailedWrite"}},
	{"removed_stays", hunter{tests: "./node", run: "JoinsAndLeaves"}},
	{"relay_for_all", hunter{tests: "./node", run: "UnrecordedNode"}},
	{"cut_unnoticed", hunter{tests: "./scripts/sim", run: "CutLinkIsBridged"}},
	{"late_part", hunter{tests: "./node/backup", run: "UnwantedPart"}},
	{"backup_gives_up", hunter{tests: "./scripts/sim", run: "BackupOutlives"}},
	{"ops_forgotten", world},
	{"skip_dead_shard", hunter{tests: "./scripts/sim", run: "MissesAShard"}},
	{"rows_skipped", hunter{tests: "./shard/kernel", run: "CoverageHas"}},
	{"shard_skipped", hunter{tests: "./node", run: "ReceiptHasEvery"}},
	{"tags_ignored", world},
	{"record_unawaited", hunter{tests: "./node", run: "RecordsNeedMajority"}},
	{"spool_forgotten", crashes},
	{"spool_unsynced", hunter{faults: "power,power all", audit: auditBestEffort}},
	{"records_doubled", crashes},
	{"numbers_ignored", hunter{tests: "./shard/auditlog", run: "."}},
	{"intents_forgotten", hunter{tests: "./node", run: "OpenIntents"}},
	{"epoch_ignored", hunter{tests: "./scripts/sim", run: "OldListOfShards"}},
	{"any_tenant", world},
	{"retry_new_shard", world},
	{"old_epoch_enrols", hunter{tests: "./raftfsm/shardfsm", run: "OutdatedEnrolment"}},
	{"reclaim_early", hunter{tests: "./scripts/sim", run: "GalleryIsFilled"}},
	{"revoked_stays", hunter{tests: "./scripts/sim", run: "RevokedKeyIs"}},
	{"wide_window", hunter{tests: "./scripts/sim", run: "SignedRequest"}},
	{"ops_not_in_snapshot", fsm},
	{"claims_taken", hunter{tests: "./node", run: "ExternalIDHasOneSubject"}},
	{"late_claim_counts", hunter{tests: "./raftfsm/shardfsm", run: "BarWithdraws"}},
	{"quota_restarts", fsm},
	{"grant_adds", fsm},
	{"fence_open", fsm},
	{"clock_in_fsm", fsm},
	{"map_order", fsm},
	{"restore_merges", fsm},
	{"merge_loses_events", fsm},
	{"fences_lost", fsm},
	{"update_loses_old", fsm},
	{"clock_back", fsm},
	{"expiry_any_revision", fsm},
	{"expiry_shard_clock", fsm},
	{"expiry_any_clock", hunter{tests: "./scripts/sim", run: "WrongClock"}},
	{"writes_by_wrong_clock", hunter{tests: "./scripts/sim", run: "WrongClock"}},
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
	{"early_erasure", hunter{tests: "./node", run: "ReplicasChange"}},
	{"empty_caught_up", hunter{tests: "./node/replicas", run: "EmptyReplica"}},
	{"last_voter_behind", hunter{tests: "./node/placement", run: "MoveSteps|MovesConverge"}},
	{"copy_counts_itself", hunter{tests: "./node/holder", run: "NeverBothLead"}},
	{"foreign_portal", hunter{intrusion: "tenants"}},
	{"both_lengths", hunter{intrusion: "smuggling"}},
	{"half_signature", hunter{tests: "./node/sigv4", run: "EachDigit"}},
	{"unsigned_key", hunter{intrusion: "replays"}},
	{"large_images", hunter{tests: "./engine/imaging", run: "HostileHeads"}},
	{"headers_forever", hunter{intrusion: "floods"}},
	{"nodes_order", hunter{tests: "./node", run: "AdminPortObeys"}},
	{"removed_reads", hunter{tests: "./node", run: "AdminPortObeys"}},
	{"failures_forgotten", hunter{intrusion: "guesses"}},
	{"unknown_slower", hunter{intrusion: "timing"}},
	{"cold_limit_tight", hunter{tests: "./shard/kernel", run: "Cold"}},
	{"cold_row_replaced", hunter{tests: "./shard/kernel", run: "Cold"}},
	{"cold_rows_kept", hunter{tests: "./shard/kernel", run: "FetchedRows"}},
	{"thaw_any_owner", hunter{tests: "./shard/kernel", run: "Thaw"}},
	{"read_past_end", hunter{tests: "./shard/segment", run: "SealedAlone"}},
	{"cold_tags_skipped", hunter{tests: "./shard/kernel", run: "Cold"}},
	{"outage_unsaid", hunter{tests: "./node", run: "UnreadableSole"}},
	{"fault_is_last", hunter{tests: "./router/calls", run: "FaultyReplica"}},
	{"hedges_unbounded", hunter{tests: "./router/calls", run: "HedgesStay"}},
	{"early_read_counts", hunter{tests: "./router/cluster", run: "EarlyRead"}},
	{"asker_decides", hunter{tests: "./raftfsm", run: "TwoOfFive"}},
	{"key_logged", hunter{intrusion: "leftovers"}},
}

// hunt runs hunters in one temporary folder.
type hunt struct {
	settings
	dir string
	top string // folder of the working tree
	// sound contains, for each hunter, a function that runs it once without a bug and
	// returns why it failed.
	sound map[hunter]func() error
}

// verdict is the result of the hunt for one bug.
type verdict struct {
	without string // result of the hunter without the bug
	seconds string
	how     string // what the hunter found, or why there is no finding
	found   bool
}

// huntsAtOnce is the number of tests that hunt at the same time. Most of them wait for
// the compiler, or run on one processor.
const huntsAtOnce = 2

// mutants plants each bug, or those that the settings choose, and runs the bug's hunter. Tests
// hunt beside each other, attacks alone. It prints the results as rows of a Markdown table.
// It returns an error if a hunter misses its bug, or fails with the facet that has no bug.
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
	bugs := slices.DeleteFunc(slices.Clone(plantedBugs), func(p planted) bool {
		return len(s.only) > 0 && !slices.Contains(s.only, p.name)
	})
	if s.changed != "" {
		if bugs, err = changedSince(ctx, top, s.changed, bugs); err != nil {
			return err
		}
	}
	if s.most > 0 && len(bugs) > s.most {
		rand.New(rand.NewPCG(s.seed, 0)).Shuffle(len(bugs), func(i, j int) { bugs[i], bugs[j] = bugs[j], bugs[i] })
		bugs = bugs[:s.most]
	}
	fmt.Fprintf(out, "%d of %d bugs, seed %d\n\n", len(bugs), len(plantedBugs), s.seed)
	slices.SortStableFunc(bugs, func(a, b planted) int { return strings.Compare(a.by.faults, b.by.faults) }) // attacks last
	a := &hunt{settings: s, dir: dir, top: top, sound: map[hunter]func() error{}}
	for _, p := range bugs {
		a.sound[p.by] = sync.OnceValue(func() error { return a.baseline(ctx, p.by) })
	}
	verdicts := a.all(ctx, bugs)
	fmt.Fprintln(out, "| Bug | Found by | Without it | Seconds | How |\n|---|---|---|---|---|")
	var alive []string
	for i, p := range bugs {
		v := <-verdicts[i]
		fmt.Fprintf(out, "| %s | %s | %s | %s | %s |\n", p.name, p.by, v.without, v.seconds, strings.ReplaceAll(v.how, "|", "/"))
		if !v.found {
			alive = append(alive, p.name)
		}
	}
	if len(alive) > 0 {
		return fmt.Errorf("not found: %s", strings.Join(alive, ", "))
	}
	return nil
}

// all hunts bugs in the background, and returns a channel for the verdict on each. The
// caller receives all verdicts.
func (a *hunt) all(ctx context.Context, bugs []planted) []chan verdict {
	verdicts := make([]chan verdict, len(bugs))
	for i := range verdicts {
		verdicts[i] = make(chan verdict, 1)
	}
	go func() { // ends with the last verdict
		var tests errgroup.Group
		tests.SetLimit(huntsAtOnce)
		for i, p := range bugs {
			if p.by.tests != "" {
				tests.Go(func() error { verdicts[i] <- a.one(ctx, p); return nil })
				continue
			}
			_ = tests.Wait() // the functions return no errors
			verdicts[i] <- a.one(ctx, p)
		}
	}()
	return verdicts
}

// one hunts one bug. A bug counts as missed after two tries, because attacks draw their
// faults at random.
func (a *hunt) one(ctx context.Context, p planted) verdict {
	v := verdict{without: "not run"}
	if a.settings.baseline {
		if err := a.sound[p.by](); err != nil {
			v.without, v.how = "**fails**", fmt.Sprintf("not tried: %.300v", err)
			return v
		}
		v.without = "passes"
	}
	start := time.Now()
	how, err := a.of(ctx, p.by, p.name, a.seed)
	if err == nil && how == "" {
		how, err = a.of(ctx, p.by, p.name, a.seed+1)
	}
	v.seconds = fmt.Sprintf("%.0f", time.Since(start).Seconds())
	switch {
	case err != nil:
		v.how = fmt.Sprintf("not tried: %.300v", err)
	case how == "":
		v.how = "**it lives**"
	default:
		v.how, v.found = how, true
	}
	return v
}

// workingTree returns the folder of the product's module.
func workingTree(ctx context.Context) (string, error) {
	top, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "facet").Output()
	if err != nil {
		return "", fmt.Errorf("find the working tree: %w", err)
	}
	return strings.TrimSpace(string(top)), nil
}

// changedSince returns the bugs whose patch, or a file that it patches, differs from a commit's.
func changedSince(ctx context.Context, top, commit string, bugs []planted) ([]planted, error) {
	diff := exec.CommandContext(ctx, "git", "diff", "--name-only", "--no-renames", commit, "--")
	diff.Dir = top
	out, err := diff.Output()
	if err != nil {
		return nil, fmt.Errorf("list the files changed since %s: %w", commit, err)
	}
	changed := strings.Fields(string(out))
	var touched []planted
	for _, p := range bugs {
		patch, err := patches.ReadFile(path.Join("mutants", p.name+".patch"))
		if err != nil {
			return nil, err
		}
		names := append(patchedFiles(patch), "scripts/chaos/mutants/"+p.name+".patch")
		if slices.ContainsFunc(names, func(name string) bool { return slices.Contains(changed, name) }) {
			touched = append(touched, p)
		}
	}
	return touched, nil
}

// patchedFiles returns the names of the files that a patch changes.
func patchedFiles(patch []byte) (names []string) {
	for line := range strings.Lines(string(patch)) {
		if name, changed := strings.CutPrefix(strings.TrimSpace(line), "+++ b/"); changed {
			names = append(names, name)
		}
	}
	return names
}

// plant applies a bug's patch to copies of the files that it changes, in dir. It returns
// the names of the files, relative to top, and a file for go build's -overlay.
func plant(ctx context.Context, top, dir, bug string) (files []string, overlay string, err error) {
	patch, err := patches.ReadFile(path.Join("mutants", bug+".patch"))
	if err != nil {
		return nil, "", err
	}
	replace := map[string]string{}
	files = patchedFiles(patch)
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(top, name))
		if err != nil {
			return nil, "", err
		}
		planted := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(planted), 0o700), os.WriteFile(planted, text, 0o600)); err != nil {
			return nil, "", err
		}
		replace[filepath.Join(top, name)] = planted
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
	if h.intrusion != "" {
		return fmt.Sprintf("`make attack ARGS='-only %s'`", h.intrusion)
	}
	if h.tests == "" {
		with := "attack with " + strings.ReplaceAll(h.faults, ",", ", ")
		if h.audit != "" {
			with += ", audit " + h.audit
		}
		return with
	}
	return strings.TrimSpace(fmt.Sprintf("`go test %s -run '%s' %s`", h.tests, strings.ReplaceAll(h.run, "|", "\\|"), h.args))
}

// baseline returns an error if a hunter fails with the facet that has no bug.
func (a *hunt) baseline(ctx context.Context, h hunter) error {
	how, err := a.of(ctx, h, "", a.seed)
	if err == nil && how != "" {
		err = errors.New(how)
	}
	return err
}

// of runs a hunter with a bug, or without one if bug is empty. seed chooses the faults of
// an attack. It returns the first line of the hunter's finding, or an empty string if the
// hunter found nothing.
func (a *hunt) of(ctx context.Context, h hunter, bug string, seed uint64) (how string, err error) {
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
	if h.intrusion != "" {
		if err := a.build(ctx, append([]string{"build"}, append(args, "./cmd/facet")...)...); err != nil {
			return "", err
		}
		return a.intrude(ctx, h, binary)
	}
	args[1] = "chaos,hashicorpmetrics"
	if err := a.build(ctx, append([]string{"build"}, append(args, "./cmd/facet")...)...); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, attackTimeout)
	defer cancel()
	s := a.settings
	s.binary, s.dir, s.only, s.rest, s.seed, s.audit = binary, dir, strings.Split(h.faults, ","), h.rest, seed, h.audit
	if found := attack(ctx, s, io.Discard); found != nil {
		how, _, _ = strings.Cut(found.Error(), "\n")
		how, _, _ = strings.Cut(how, " ("+s.dir)
		how, _, _ = strings.Cut(how, ": see "+s.dir)
		how = fmt.Sprintf("%.160s", how)
	}
	return how, ctx.Err()
}

// intrude runs a part of make attack against a program.
func (a *hunt) intrude(ctx context.Context, h hunter, binary string) (how string, err error) {
	ctx, cancel := context.WithTimeout(ctx, attackTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "run", "-tags", "hashicorpmetrics", "./scripts/attack", "-only", h.intrusion, "-facet", binary)
	cmd.Dir = a.top
	cmd.Env = append(os.Environ(), "TMPDIR="+filepath.Dir(binary)) // it keeps the files of what got through
	text, failed := cmd.CombinedOutput()
	if failed == nil || ctx.Err() != nil {
		return "", ctx.Err()
	}
	_, how, got := strings.Cut(string(text), "got through:\n")
	if !got {
		return "", fmt.Errorf("the attacks end without a verdict: %.600s", text)
	}
	how, _, _ = strings.Cut(strings.TrimSpace(how), "\n")
	return fmt.Sprintf("%.160s", how), nil
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
	if strings.Contains(string(text), "panic: test timed out") { // so does a slow machine, without a bug
		return "", fmt.Errorf("the tests do not end in %s, which finds no bug", testTimeout)
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
	if fallen != "" {
		return fallen, nil
	}
	return "", fmt.Errorf("the tests end without a verdict: %.600s", text)
}
