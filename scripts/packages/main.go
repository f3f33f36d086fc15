package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "packages: %v\n", err)
		stop()
		os.Exit(1)
	}
}

// errUsage is returned for a command line that names no command.
var errUsage = errors.New(`go run ./scripts/packages COMMAND

  version [-write]   the version, from CHANGELOG.md; -write: into all files that repeat it
  build [FLAGS]      packages, image, chart, bills of materials and checksums; -h lists the flags
  digest IMAGE       the digest of an image of a registry, to pin a base: NAME@sha256:…`)

func run(ctx context.Context, args []string, out io.Writer) error {
	if _, err := os.Stat(changelogFile); err != nil {
		return fmt.Errorf("%w: run this in the repository's root", err)
	}
	if len(args) == 0 {
		return errUsage
	}
	switch args[0] {
	case "version":
		version, err := checkVersions(".", slices.Contains(args[1:], "-write"))
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(out, version)
		return err
	case "build":
		b, err := newBuilder(args[1:], out)
		if err != nil {
			return err
		}
		return b.build(ctx)
	case "digest":
		if len(args) != 2 {
			return errUsage
		}
		name, err := pinned(ctx, args[1])
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(out, name)
		return err
	}
	return errUsage
}

// newBuilder returns the builder that the flags of build describe.
func newBuilder(args []string, out io.Writer) (*builder, error) {
	b := &builder{root: ".", out: out}
	f := flag.NewFlagSet("build", flag.ContinueOnError)
	only := f.String("only", strings.Join(kinds, ","), "what to build")
	arch := f.String("arch", "amd64,arm64", "processors")
	f.StringVar(&b.dist, "to", "dist", "folder to write to")
	f.StringVar(&b.base, "base", "", "base of the image, NAME@sha256:…; empty: made of this machine's distribution's packages")
	f.StringVar(&b.key, "key", "", "private key of SSH that signs the checksums; empty: they are not signed")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(*arch, ",") {
		i := slices.IndexFunc(targets, func(t target) bool { return t.arch == name })
		if i < 0 {
			return nil, fmt.Errorf("-arch: there is no processor %q, only amd64 and arm64", name)
		}
		b.targets = append(b.targets, targets[i])
	}
	b.only = strings.Split(*only, ",")
	for _, kind := range b.only {
		if !slices.Contains(kinds, kind) {
			return nil, fmt.Errorf("-only: there is no %q, only %s", kind, strings.Join(kinds, ", "))
		}
	}
	if b.key != "" {
		if err := b.named(); err != nil {
			return nil, err
		}
	}
	return b, b.complete()
}
