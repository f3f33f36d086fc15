// Command attack attacks a real cluster on this machine and prints what it tried and
// what got through.
//
//	attack [-only KIND,KIND] [-seed N] [-facet FILE] [-assets DIR]
//
// It starts four processes of the built facet, removes one of them, and attacks the
// others over loopback, with real TLS, signatures and photos. It ends with exit status 1
// if anything got through, or if the cluster does not serve afterwards as before. Run it
// on a cluster of its own only: it makes one.
//
// It may import every package of this module.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"facet/scripts/bench/cluster"
)

// shownMax is the most findings of one kind that are printed.
const shownMax = 10

// attack is one run of attacks.
type attack struct {
	*target
	ctx  context.Context
	seed uint64
}

// kind is a kind of attacks.
type kind struct {
	name, about string
	run         func(*attack, *tally) error
}

// kinds lists the attacks, in their order.
var kinds = []kind{
	{"tenants", "every operation with ids, names and keys of another tenant or role", func(a *attack, c *tally) error { return crossing{a}.crossTenants(c) }},
	{"smuggling", "a second request hidden behind an ambiguous first one", func(a *attack, c *tally) error { return smuggling{a}.smuggle(c) }},
	{"replays", "captured requests sent again, changed, late", func(a *attack, c *tally) error { return replays{a}.replay(c) }},
	{"floods", "connections, slow headers and bodies, garbage on each port", func(a *attack, c *tally) error { return floods{a}.flood(c) }},
	{"guesses", "wrong signatures beside good clients at one address", func(a *attack, c *tally) error { return guessing{a}.guess(c) }},
	{"timing", "unknown access keys beside known ones", func(a *attack, c *tally) error { return guessing{a}.timing(c) }},
	{"leftovers", "photos, names, keys and templates in the clear on disks and in logs", func(a *attack, c *tally) error { return scanning{a}.leftovers(c) }},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "attack:", err)
		os.Exit(1) //nolint:gocritic // the cluster is closed
	}
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	var files cluster.Files
	flags := flag.NewFlagSet("attack", flag.ContinueOnError)
	only := flags.String("only", "", "kinds of attacks, separated by commas; empty: all")
	seed := flags.Uint64("seed", 1, "seed of the random choices")
	flags.StringVar(&files.Facet, "facet", "bin/facet", "the program under attack")
	flags.StringVar(&files.Assets, "assets", "assets", "folder of make setup")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen := strings.FieldsFunc(*only, func(c rune) bool { return c == ',' })
	for _, name := range chosen {
		if !slices.ContainsFunc(kinds, func(k kind) bool { return k.name == name }) {
			return fmt.Errorf("there is no kind %q of attacks", name)
		}
	}
	dir, err := os.MkdirTemp("", "attack-")
	if err != nil {
		return err
	}
	defer func() {
		if err == nil {
			err = os.RemoveAll(dir)
		} else {
			err = fmt.Errorf("%w\nthe cluster's files and logs are in %s", err, dir)
		}
	}()
	began := time.Now()
	t, err := begin(ctx, files, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	a := &attack{target: t, ctx: ctx, seed: *seed}
	if err := t.serves(ctx); err != nil {
		return fmt.Errorf("before the attacks: %w", err)
	}
	fmt.Fprintf(out, "%d nodes, seed %d, ready after %.0f s\n\n", nodes, *seed, time.Since(began).Seconds())
	return a.all(out, chosen)
}

// all runs the chosen kinds of attacks, or all, and prints a row for each.
func (a *attack) all(out io.Writer, chosen []string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "kind\ttries\tgot through\tseconds\twhat")
	var through []string
	tries := 0
	for _, k := range kinds {
		if len(chosen) > 0 && !slices.Contains(chosen, k.name) {
			continue
		}
		if err := a.ctx.Err(); err != nil {
			return err
		}
		c, began := &tally{}, time.Now()
		if err := k.run(a, c); err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
		if err := a.serves(a.ctx); err != nil {
			c.got("afterwards: %v", err)
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%.0f\t%s\n", k.name, c.tries, len(c.through), time.Since(began).Seconds(), k.about)
		for _, n := range c.notes {
			fmt.Fprintf(w, "\t\t\t\t  %s\n", n)
		}
		if err := w.Flush(); err != nil {
			return err
		}
		tries += c.tries
		for i, what := range c.through {
			if i < shownMax {
				through = append(through, k.name+": "+what)
			}
		}
	}
	if len(through) > 0 {
		return fmt.Errorf("got through:\n  %s", strings.Join(through, "\n  "))
	}
	fmt.Fprintf(out, "\n%d tries, nothing got through; all nodes serve as before\n", tries)
	return nil
}

// expectNoTag checks that no tag of the victim has a name with this beginning.
func (a *attack) expectNoTag(c *tally, prefix string) error {
	v := a.victim
	got, err := a.send(0, address{0, 1}, a.sign(0, v.only, http.MethodGet, "/v1.1/tags", nil, apiKey(v.gallery.apiKey)))
	if err == nil && (got.status != http.StatusOK || strings.Contains(got.body, prefix)) {
		c.got("a hidden request took effect: %s", got)
	}
	return err
}

// ports returns the ports between nodes and the admin ports of the nodes that serve.
func (a *attack) ports() (peers, admins []string, err error) {
	s, err := a.Admin().Status(a.ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, n := range a.info.Nodes[:nodes] {
		for _, m := range s.Nodes {
			if m.ID == n.ID {
				peers, admins = append(peers, m.Peer), append(admins, n.Admin)
			}
		}
	}
	if len(peers) != nodes {
		return nil, nil, errors.New("the status lacks a node")
	}
	return peers, admins, nil
}
