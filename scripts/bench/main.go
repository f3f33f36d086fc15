// Command bench measures facet beside something to compare it with: a peer, a limit of
// the machine, or facet's own innermost part. Both are measured in one run. It prints
// Markdown tables with goals, and with -write it also writes them into docs/benchmarks.
//
//	bench PART [-write] [flags of the part]
//	bench PART -help
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"facet/engine/models"
	"facet/scripts/bench/audit"
	"facet/scripts/bench/cluster"
	"facet/scripts/bench/cold"
	"facet/scripts/bench/engine"
	"facet/scripts/bench/idle"
	"facet/scripts/bench/imports"
	"facet/scripts/bench/memory"
	"facet/scripts/bench/overload"
	"facet/scripts/bench/restart"
	"facet/scripts/bench/search"
	"facet/scripts/bench/service"
	"facet/scripts/bench/table"
)

// parts lists the benchmarks.
var parts = []struct {
	name, about string
	flags       func(*flag.FlagSet) func(context.Context, cluster.Files, io.Writer) error
	pin         func() error // nil: the benchmark uses all cores
}{
	{"audit", "requests with the audit log off, with best effort and strict", audit.Flags, nil},
	{"cold", "searches whose exact rows are on disk, beside an earlier kernel", cold.Flags, nil},
	{"engine", "models, pipeline and HTTPS beside each other", engine.Flags, nil},
	{"idle", "processor time of three nodes without requests", idle.Flags, nil},
	{"import", "facet import beside the load generator", imports.Flags, nil},
	{"memory", "bytes an event of a node's memory, by kind, beside FAISS", memory.Flags, nil},
	{"overload", "a node under ten times its load", overload.Flags, overload.Pin},
	{"restart", "a node that starts with a million templates", restart.Flags, nil},
	{"search", "the search kernel beside its peers", search.Flags, search.Pin},
	{"service", "searches through three nodes beside the kernel alone", service.Flags, nil},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1) //nolint:gocritic // everything is closed
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return usage()
	}
	switch args[0] {
	case cluster.ServeCommand: // this process is a node of a cluster
		if err := cluster.ServeSet(); err != nil {
			return err
		}
		return service.Serve(args[1:])
	case engine.BurnCommand:
		return engine.ServeBurns(ctx, os.Stdout)
	}
	for _, p := range parts {
		if p.name != args[0] {
			continue
		}
		if p.pin != nil {
			if err := p.pin(); err != nil {
				return err
			}
		}
		var files cluster.Files
		flags := flag.NewFlagSet("bench "+p.name, flag.ExitOnError)
		flags.StringVar(&files.Assets, "assets", "assets", "folder that make setup fills")
		flags.StringVar(&files.Facet, "facet", "bin/facet", "the program whose nodes are measured")
		flags.StringVar(&files.Model, "pack", models.FoundingPack, "the model pack, a folder of packs in assets")
		write := flags.Bool("write", false, "write the tables into docs/benchmarks, too")
		part := p.flags(flags)
		_ = flags.Parse(args[1:]) // exits
		return measure(ctx, part, files, p.name, *write)
	}
	return usage()
}

func measure(ctx context.Context, part func(context.Context, cluster.Files, io.Writer) error, files cluster.Files, name string, write bool) (err error) {
	out := io.Writer(os.Stdout)
	if write {
		f, err := table.Create(name, os.Args[2:])
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		out = io.MultiWriter(out, f)
	}
	if err := part(ctx, files, out); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func usage() error {
	var text strings.Builder
	for _, p := range parts {
		fmt.Fprintf(&text, "\n  %-9s %s", p.name, p.about)
	}
	return errors.New("choose a part:" + text.String())
}
