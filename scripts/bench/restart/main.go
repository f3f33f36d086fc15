//go:build linux

// Command bench-restart measures how soon a node serves again that was stopped with a
// million templates on its disk. It founds a cluster of one node, puts templates into
// its shards through their Raft groups, with the program stopped, and then starts the
// program on one core: until it is ready, and until a search has come back that had to
// look at every template. Beside that it tells what can't be avoided on that core: to
// read the same files, to decrypt the same bytes, and to touch as much new memory.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

type options struct {
	facet  string
	assets string
	events int
	rounds int
	dir    string
	cold   bool
	out    io.Writer
}

// eventsMax bounds the templates: about 25 GB of memory and of disk.
const eventsMax = 25_000_000

func main() {
	o := options{out: os.Stdout}
	flag.StringVar(&o.facet, "facet", "bin/facet", "the program")
	flag.StringVar(&o.assets, "assets", "assets", "folder that make setup fills")
	flag.IntVar(&o.events, "events", 1_000_000, "templates")
	flag.IntVar(&o.rounds, "rounds", 3, "restarts")
	flag.StringVar(&o.dir, "dir", "", "folder for the cluster, which stays and is used again; none: a temporary one")
	flag.BoolVar(&o.cold, "cold", false, "drop the system's file cache before each restart (as root)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench-restart:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	if o.events < 1 || o.events > eventsMax || o.rounds < 1 {
		return fmt.Errorf("1 to %d templates, 1 round or more", eventsMax)
	}
	if o.dir == "" {
		if o.dir, err = os.MkdirTemp("", "bench-restart"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(o.dir)) }()
	}
	photo, err := os.ReadFile(filepath.Join(o.assets, "photos", "face_recognition", "obama.jpg"))
	if err != nil {
		return err
	}
	b := &bench{options: o, photo: photo}
	if err := b.prepare(ctx); err != nil {
		return err
	}
	return b.measure(ctx)
}

// measure restarts the node in turn with what it is compared with, and tells the medians.
func (b *bench) measure(ctx context.Context) error {
	var ready, searched, read, opened, touched []time.Duration
	var resident float64
	for range b.rounds {
		if b.cold {
			if err := dropCache(); err != nil {
				return err
			}
		}
		least, err := measureLimits(b.segments, b.events)
		if err != nil {
			return err
		}
		read, opened, touched = append(read, least.read), append(opened, least.decrypt), append(touched, least.touch)
		if b.cold {
			if err := dropCache(); err != nil {
				return err
			}
		}
		r, err := b.restart(ctx)
		if err != nil {
			return err
		}
		ready, searched, resident = append(ready, r.ready), append(searched, r.searched), r.resident
	}
	row := func(name string, list []time.Duration) time.Duration {
		slices.Sort(list)
		m := list[len(list)/2]
		fmt.Fprintf(b.out, "%-52s %6.2f s   (%.2f … %.2f)\n", name, m.Seconds(), list[0].Seconds(), list[len(list)-1].Seconds())
		return m
	}
	fmt.Fprintf(b.out, "%d templates in %.0f MB of segments, one core, %d restarts: medians\n", b.events, float64(b.bytes)/1e6, b.rounds)
	row("ready, by /readyz: all templates are open", ready)
	last := row("a search over every template has been answered", searched)
	limit := row("  at least: read the segments", read) + row("  at least: decrypt the faces", opened) + row("  at least: touch that much new memory", touched)
	fmt.Fprintf(b.out, "search after %.1f × what is needed at least; %.2f µs a template\n", last.Seconds()/limit.Seconds(), last.Seconds()*1e6/float64(b.events))
	fmt.Fprintf(b.out, "resident %.2f GB, %.0f bytes a template\n", resident/1e9, resident/float64(b.events))
	const goal = 10 * time.Second
	if b.events <= 1_000_000 && last > goal {
		return fmt.Errorf("the goal is %s", goal)
	}
	return nil
}
