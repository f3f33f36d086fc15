package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"facet/scripts/chaos/ledger"
	"facet/scripts/chaos/power"
	"facet/scripts/chaos/traffic"
)

const (
	restDefault = time.Second
	// wrongMax is the most kinds of wrong answers that are printed.
	wrongMax = 20
	// A gallery gets one shard more for each sizeStep of its size.
	sizeMin, sizeStep, sizeMax = 50_000, 50_000, 1_000_000
)

// settings describe a run.
type settings struct {
	nodes, shards, workers int
	length, rest           time.Duration
	seed                   uint64
	binary, dir            string
	only                   []string
	loopback, grow         bool
	summary, tally         string // files
	logLevel               string // log level of the nodes; empty means info
	photos                 string // folder of photos; empty: templates come from hashes
	cold                   bool   // change the nodes' memory, so that exact rows leave it and come back
	backups                bool   // make backups during the attack and restore them at the end
	baseline               bool   // run the hunters without a bug first
	changed                string // hunt only bugs whose files changed since this commit
	most                   int    // hunt at most so many bugs, drawn by the seed; 0 is all
	audit                  string // the mode of the clients' audit log: strict, best-effort or off; empty: by the seed
}

func main() {
	if err := power.OwnMounts(); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
	var s settings
	var only string
	var planted bool
	flag.IntVar(&s.nodes, "nodes", 3, "nodes of the cluster")
	flag.IntVar(&s.shards, "shards", 4, "shards of the cluster")
	flag.IntVar(&s.workers, "workers", 12, "concurrent clients")
	flag.DurationVar(&s.length, "for", 2*time.Minute, "how long the nemesis works")
	flag.DurationVar(&s.rest, "rest", restDefault, "the longest pause between two faults")
	flag.Uint64Var(&s.seed, "seed", uint64(time.Now().UnixNano()), "of the nemesis and the clients' choices")
	flag.StringVar(&s.binary, "facet", "", "facet built with -tags chaos; built here when empty")
	flag.StringVar(&s.dir, "dir", "", "folder for data, logs and evidence; a temporary one when empty")
	flag.StringVar(&only, "faults", "", "comma-separated names of the faults to choose from; all when empty")
	flag.StringVar(&s.summary, "summary", "", "file for what the run showed, as JSON")
	flag.StringVar(&s.tally, "tally", "", "file to add the run to, as a line of CSV")
	flag.StringVar(&s.logLevel, "log-level", "info", "of the nodes' logs")
	flag.StringVar(&s.photos, "photos", "", "folder of portraits, one of each person: faces are found by the real models, not by a hash of the image")
	flag.BoolVar(&s.backups, "backups", false, "make backups meanwhile, restore some of them in the end, and compare")
	flag.BoolVar(&s.cold, "cold", false, "give the nodes so little memory, again and again, that exact rows of templates leave it and come back")
	flag.BoolVar(&planted, "mutants", false, "show that planted bugs are found: all, or those that -faults names")
	flag.BoolVar(&s.baseline, "baseline", true, "with -mutants: run each hunter without a bug first; make test and make test-long run them all, too")
	flag.StringVar(&s.changed, "changed", "", "with -mutants: hunt only bugs whose files changed since this commit")
	flag.IntVar(&s.most, "most", 0, "with -mutants: hunt at most so many bugs, drawn by the seed; all when 0")
	flag.BoolVar(&s.grow, "grow", true, "let the large gallery grow over all shards while clients work, else it is large from the start")
	flag.StringVar(&s.audit, "audit", "", "mode of the audit log, which has exactly one record of each answer: strict, best-effort or off; by the seed when empty")
	flag.BoolVar(&s.loopback, "loopback", os.Geteuid() != 0, "no network namespaces: only stop, pause and kill")
	flag.Parse()
	if only != "" {
		s.only = strings.Split(only, ",")
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	do := attack
	if planted {
		do = mutants
	}
	err := do(ctx, s, os.Stdout)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

// attack starts a cluster, attacks it under traffic, and returns an error for
// everything that went wrong.
func attack(ctx context.Context, s settings, out io.Writer) (err error) {
	keep := s.dir != ""
	if !keep {
		if s.dir, err = os.MkdirTemp("", "chaos-"); err != nil {
			return fmt.Errorf("make a folder: %w", err)
		}
	}
	if s.dir, err = filepath.Abs(s.dir); err != nil {
		return fmt.Errorf("find the folder: %w", err)
	}
	if s.audit == "" {
		s.audit = []string{auditStrict, auditBestEffort}[s.seed%2]
	}
	if s.binary == "" {
		tags := "hashicorpmetrics"
		if s.photos == "" {
			tags += ",chaos"
		}
		s.binary = filepath.Join(s.dir, "facet")
		if text, err := exec.CommandContext(ctx, "go", "build", "-tags", tags, "-ldflags", "-s -w", "-o", s.binary, "facet/cmd/facet").CombinedOutput(); err != nil {
			return fmt.Errorf("build facet: %w: %s", err, text)
		}
	}
	c, err := openCluster(s)
	if err != nil {
		return err
	}
	defer func() {
		c.close()
		switch {
		case err != nil:
			fmt.Fprintf(out, "evidence: %s, seed %d\n", s.dir, s.seed)
		case !keep:
			_ = os.RemoveAll(s.dir) // a temporary folder
		}
	}()
	for _, p := range c.members() {
		if err := c.start(p); err != nil {
			return err
		}
	}
	if err := c.waitWhole(ctx); err != nil {
		return err
	}
	own, t, l, err := c.clients(ctx, s)
	if err != nil {
		return err
	}
	return c.story(ctx, s, own, t, l, out)
}

// tenant is the name of the tenant whose clients work.
const tenant = "chaos"

// clients creates two tenants and opens the traffic of the first one.
func (c *cluster) clients(ctx context.Context, s settings) (*client, *traffic.Traffic, *ledger.Ledger, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*readyTimeout)
	defer cancel()
	own, err := c.client(ctx, tenant)
	if err != nil {
		return nil, nil, nil, err
	}
	other, err := c.client(ctx, "stranger")
	if err != nil {
		return nil, nil, nil, err
	}
	l, err := c.ledger(ctx, own, s.audit)
	if err != nil {
		return nil, nil, nil, err
	}
	o := traffic.Options{Size: sizeMax}
	if s.cold {
		o.Ballast = ballastOf * s.shards
	} else if s.grow {
		o = traffic.Options{Size: sizeMin, Step: sizeStep, SizeMax: sizeMax}
	}
	o.Expiring = s.photos == "" // the build with real models has the machine's clock
	if o.Photos, err = portraits(s.photos); err != nil {
		return nil, nil, nil, err
	}
	t, err := traffic.Open(ctx, func(apiKey string) traffic.Sender { return l.Sender(own.with(apiKey)) }, other.with, o)
	return own, t, l, err
}

// portraits reads the photos in a folder. Without a folder it returns none.
func portraits(folder string) (photos [][]byte, err error) {
	if folder == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(folder)
	for i := 0; err == nil && i < len(entries); i++ {
		var raw []byte
		raw, err = os.ReadFile(filepath.Join(folder, entries[i].Name()))
		photos = append(photos, raw)
	}
	if err == nil && len(photos) == 0 {
		err = fmt.Errorf("there is no photo in %s", folder)
	}
	if err != nil {
		return nil, fmt.Errorf("read the photos: %w", err)
	}
	return photos, nil
}

// story runs the nemesis and the clients against the cluster, undoes all faults, and
// checks the results.
func (c *cluster) story(ctx context.Context, s settings, own *client, t *traffic.Traffic, l *ledger.Ledger, out io.Writer) error {
	n := &nemesis{
		cluster: c, clock: own.clock, gauge: own.gauge, acked: t.AckedOn, random: rand.New(rand.NewPCG(s.seed, 0)), rest: cmp.Or(s.rest, restDefault), out: out, start: t.Start(), counts: map[string]int{},
	}
	mode := "namespaces"
	if s.loopback {
		mode = "loopback, so no faults of links and disks"
	} else if !c.disks {
		mode = "namespaces, no faults of disks"
	}
	n.say("%d nodes, %d shards, %d clients, seed %d, audit %s, %s", s.nodes, s.shards, s.workers, s.seed, s.audit, mode)
	copies, err := c.openCopyist(own, t, n, s)
	if err != nil {
		return err
	}
	stop, end := context.WithTimeout(ctx, s.length)
	defer end()
	give, giveUp := context.WithTimeout(ctx, s.length+4*readyTimeout)
	defer giveUp()
	broken := make(chan error, 1)
	go func() { broken <- n.run(stop, s.only) }()
	watched := make(chan error, 1)
	go func() { watched <- l.Watch(stop) }()
	copied := make(chan error, 1)
	go func() { copied <- copies.run(stop, give) }()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		t.Run(stop, give, s.workers, s.seed)
	}()
	squeezed := s.squeezed(stop, n)
	err = <-broken
	n.end = min(s.length, time.Since(n.start))
	end() // if the nemesis could not go on, the clients end, too
	n.say("healed; waiting for the last answers")
	whole := c.waitWhole(ctx)
	if whole != nil {
		giveUp()
	}
	<-answered
	err = errors.Join(err, whole, <-copied, squeezed(), <-watched)
	if whole == nil {
		err = errors.Join(err, t.Complete(give), n.audited(give, l, s.audit))
	}
	if whole == nil && !n.damaged() {
		err = errors.Join(err, c.sound(give))
	}
	if err == nil && s.backups {
		err = errors.Join(c.end(), copies.check(give))
	}
	strict, excused := n.excuse(t.History)
	n.say("checking %d operations on subjects, and %d on external ids; %d events expired within %s, %d more during a fault or soon after", len(t.History), len(t.Named), strict, traffic.ExpiredWithin, excused)
	return judge(t, n, s, errors.Join(err, traffic.Linearizable(t.History, s.dir), traffic.UniquelyNamed(t.Named), traffic.MergedWhole(t.Paired)), out)
}

// judge adds the wrong answers to err and prints the run's summary.
func judge(t *traffic.Traffic, n *nemesis, s settings, err error, out io.Writer) error {
	err = errors.Join(err, unbridged(n.windows, t.Failed))
	for i, wrong := range slices.Sorted(maps.Keys(t.Wrong)) {
		if i == wrongMax {
			err = errors.Join(err, fmt.Errorf("and %d more kinds", len(t.Wrong)-i))
			break
		}
		err = errors.Join(err, fmt.Errorf("%d ×: %s", t.Wrong[wrong], wrong))
	}
	problems := []string{}
	if err != nil {
		problems = strings.Split(err.Error(), "\n")
		err = errors.Join(err, save(t, s.dir))
	}
	sum := summary(t, n, s, problems)
	sum.print(out)
	if s.summary != "" {
		err = errors.Join(err, sum.write(s.summary))
	}
	if s.tally != "" {
		err = errors.Join(err, sum.tally(s.tally))
	}
	if err == nil {
		fmt.Fprintln(out, "nothing lost, nothing doubled, nothing stale")
	}
	return err
}

// save writes the history to a file, as evidence.
func save(t *traffic.Traffic, dir string) error {
	raw, err := json.MarshalIndent(t.History, "", " ")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "history.json"), raw, 0o600)
	}
	if err != nil {
		return fmt.Errorf("keep the history: %w", err)
	}
	return nil
}
