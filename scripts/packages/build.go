package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What -only names.
const (
	kindPackages = "packages" // .deb and .rpm
	kindPortable = "portable" // for pip and npm
	kindImage    = "image"
	kindChart    = "chart"
)

var kinds = []string{kindPackages, kindPortable, kindImage, kindChart}

// target is a processor. zig names it to the C compiler, with the oldest C library on which the
// program runs: that of ONNX Runtime's wheels (manylinux_2_28).
type target struct{ arch, zig string }

var targets = []target{{"amd64", "x86_64-linux-gnu.2.28"}, {"arm64", "aarch64-linux-gnu.2.28"}}

// Folders of tools and of what belongs to another processor, below assets.
const (
	toolsFolder  = "assets/tools"
	debianFolder = "assets/tools/debian"
)

// builder builds a release.
type builder struct {
	root, dist, base, key string
	targets               []target
	only                  []string
	out                   io.Writer

	version  string
	releases []release
	epoch    time.Time // of everything that is written
	commit   string    // may be empty
}

// complete reads the version and the time of the commit.
func (b *builder) complete() (err error) {
	for _, dir := range []*string{&b.root, &b.dist} {
		if *dir, err = filepath.Abs(*dir); err != nil {
			return err
		}
	}
	if b.version, err = checkVersions(b.root, false); err != nil {
		return err
	}
	if b.releases, err = readChangelog(b.root); err != nil {
		return err
	}
	b.epoch, b.commit = b.releases[0].Date, ""
	if out, err := exec.Command("git", "-C", b.root, "log", "-1", "--format=%ct %H").Output(); err == nil {
		seconds, commit, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
		if n, err := strconv.ParseInt(seconds, 10, 64); err == nil {
			b.epoch, b.commit = time.Unix(n, 0).UTC(), commit
		}
	}
	if b.epoch.IsZero() {
		return fmt.Errorf("there is neither a commit nor a date in %s: the packages need a time", changelogFile)
	}
	return nil
}

func (b *builder) wants(kind string) bool { return slices.Contains(b.only, kind) }

func (b *builder) build(ctx context.Context) error {
	if err := os.MkdirAll(b.dist, 0o755); err != nil {
		return err
	}
	var files []string
	add := func(err error, names ...string) error {
		files = append(files, names...)
		return err
	}
	if b.wants(kindChart) {
		name, err := b.chart()
		if err := add(err, name); err != nil {
			return fmt.Errorf("pack the chart: %w", err)
		}
	}
	if b.wants(kindPackages) || b.wants(kindPortable) || b.wants(kindImage) {
		for _, t := range b.targets {
			b.say("facet %s for %s", b.version, t.arch)
			if err := b.stage(ctx, t); err != nil {
				return fmt.Errorf("build for %s: %w", t.arch, err)
			}
			name, err := b.bill(ctx, t)
			if err := add(err, name); err != nil {
				return fmt.Errorf("bill of materials for %s: %w", t.arch, err)
			}
		}
	}
	if b.wants(kindPackages) {
		for _, t := range b.targets {
			names, err := b.packages(ctx, t)
			if err := add(err, names...); err != nil {
				return fmt.Errorf("packages for %s: %w", t.arch, err)
			}
		}
	}
	if b.wants(kindPortable) {
		for _, t := range b.targets {
			names, err := b.portable(t)
			if err := add(err, names...); err != nil {
				return fmt.Errorf("packages of pip and npm for %s: %w", t.arch, err)
			}
		}
	}
	if b.wants(kindImage) {
		name, err := b.image(ctx)
		if err := add(err, name); err != nil {
			return fmt.Errorf("image: %w", err)
		}
	}
	return b.sums(ctx, files)
}

func (b *builder) say(format string, args ...any) { fmt.Fprintf(b.out, format+"\n", args...) }

// work returns the folder of what is made on the way for a target.
func (b *builder) work(t target, name ...string) string {
	return filepath.Join(append([]string{b.dist, "work", t.arch}, name...)...)
}

// command runs a program in the root and returns its output.
func (b *builder) command(ctx context.Context, environ []string, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = b.root, append(os.Environ(), environ...)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s%s", filepath.Base(name), err, out, complaint.String())
	}
	return out, nil
}

func (b *builder) tool(name ...string) string {
	return filepath.Join(append([]string{b.root, toolsFolder}, name...)...)
}
