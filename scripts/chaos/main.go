package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// wrongMax bounds how many kinds of wrong answers are printed.
const wrongMax = 20

// settings say what run is wanted.
type settings struct {
	nodes, shards, workers int
	length                 time.Duration
	seed                   uint64
	binary, dir            string
	only                   []string
	loopback               bool
	summary, tally         string // files
	logLevel               string // of the nodes; info when empty
}

func main() {
	var s settings
	var only string
	var planted bool
	flag.IntVar(&s.nodes, "nodes", 3, "nodes of the cluster")
	flag.IntVar(&s.shards, "shards", 4, "shards of the cluster")
	flag.IntVar(&s.workers, "workers", 12, "concurrent clients")
	flag.DurationVar(&s.length, "for", 2*time.Minute, "how long the nemesis works")
	flag.Uint64Var(&s.seed, "seed", uint64(time.Now().UnixNano()), "of the nemesis and the clients' choices")
	flag.StringVar(&s.binary, "facet", "", "facet built with -tags chaos; built here when empty")
	flag.StringVar(&s.dir, "dir", "", "folder for data, logs and evidence; a temporary one when empty")
	flag.StringVar(&only, "faults", "", "comma-separated names of the faults to choose from; all when empty")
	flag.StringVar(&s.summary, "summary", "", "file for what the run showed, as JSON")
	flag.StringVar(&s.tally, "tally", "", "file to add the run to, as a line of CSV")
	flag.StringVar(&s.logLevel, "log-level", "info", "of the nodes' logs")
	flag.BoolVar(&planted, "mutants", false, "show that planted bugs are found: all, or those that -faults names")
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

// attack makes a cluster, attacks it under traffic, and gives what is wrong with it.
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
	if s.binary == "" {
		s.binary = filepath.Join(s.dir, "facet")
		if text, err := exec.CommandContext(ctx, "go", "build", "-tags", "chaos,hashicorpmetrics", "-o", s.binary, "facet/cmd/facet").CombinedOutput(); err != nil {
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
	t, err := c.galleries(ctx)
	if err != nil {
		return err
	}
	return c.story(ctx, s, t, out)
}

// galleries makes a tenant with a large and a small gallery.
func (c *cluster) galleries(ctx context.Context) (*traffic, error) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	client, err := c.client(ctx, "chaos")
	if err != nil {
		return nil, err
	}
	big, err := client.gallery(ctx, "big", 1_000_000)
	if err != nil {
		return nil, err
	}
	for _, tag := range tags {
		if _, err := big.do(ctx, 0, request{method: http.MethodPost, target: "/v1.1/tags/" + tag}); err != nil {
			return nil, err
		}
	}
	small, err := client.gallery(ctx, "small", smallSize)
	if err != nil {
		return nil, err
	}
	return newTraffic(big, small), nil
}

// story lets nemesis and clients at the cluster, heals it, and checks.
func (c *cluster) story(ctx context.Context, s settings, t *traffic, out io.Writer) error {
	n := &nemesis{
		cluster: c, clock: t.big.clock, random: rand.New(rand.NewPCG(s.seed, 0)), out: out, start: t.start, counts: map[string]int{},
	}
	mode := "namespaces"
	if s.loopback {
		mode = "loopback, so no faults of links and disks"
	} else if !c.disks {
		mode = "namespaces, no faults of disks"
	}
	n.say("%d nodes, %d shards, %d clients, seed %d, %s", s.nodes, s.shards, s.workers, s.seed, mode)
	stop, end := context.WithTimeout(ctx, s.length)
	defer end()
	give, giveUp := context.WithTimeout(ctx, s.length+4*readyTimeout)
	defer giveUp()
	broken := make(chan error, 1)
	go func() { broken <- n.run(stop, s.only) }()
	traffic := make(chan struct{})
	go func() {
		defer close(traffic)
		t.run(stop, give, s.workers, s.seed)
	}()
	err := <-broken
	end() // a nemesis that could not go on ends the clients, too
	n.say("healed; waiting for the last answers")
	whole := c.waitWhole(ctx)
	if whole != nil {
		giveUp()
	}
	<-traffic
	err = errors.Join(err, whole)
	if whole == nil {
		err = errors.Join(err, t.complete(give))
	}
	n.say("checking %d operations on subjects", len(t.history))
	return t.judge(n, s, errors.Join(err, linearizable(t.history, s.dir)), out)
}

// judge adds the answers that were wrong, and tells the run.
func (t *traffic) judge(n *nemesis, s settings, err error, out io.Writer) error {
	for i, wrong := range slices.Sorted(maps.Keys(t.wrong)) {
		if i == wrongMax {
			err = errors.Join(err, fmt.Errorf("and %d more kinds", len(t.wrong)-i))
			break
		}
		err = errors.Join(err, fmt.Errorf("%d ×: %s", t.wrong[wrong], wrong))
	}
	problems := []string{}
	if err != nil {
		problems = strings.Split(err.Error(), "\n")
		err = errors.Join(err, t.save(s.dir))
	}
	sum := t.summary(n, s, problems)
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

// save keeps the history as evidence.
func (t *traffic) save(dir string) error {
	raw, err := json.MarshalIndent(t.history, "", " ")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "history.json"), raw, 0o600)
	}
	if err != nil {
		return fmt.Errorf("keep the history: %w", err)
	}
	return nil
}
