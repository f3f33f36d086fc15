package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// maxFetch is the longest time that one package may take.
	maxFetch = 10 * time.Minute
	// killDelay is how long a client may take to end after it has been told to
	// stop.
	killDelay = 5 * time.Second
	// maxClientLines is the number of lines of a failed client's output that are
	// shown, each of its beginning and its end.
	maxClientLines = 3
)

// noBuild is a build backend for Python packages that builds nothing. To get the
// metadata of a source distribution that it downloads, pip would otherwise run
// the package's setup.py, with build tools of any version.
//
//go:embed nobuild.py
var noBuild []byte

// clients are the commands that fetch packages, as argument lists.
type clients struct{ pip, npm []string }

// findClients returns the clients that the packages need. If one is missing, the
// error says what to install.
func findClients(ctx context.Context, need []*pkg) (clients, error) {
	var c clients
	for _, p := range need {
		var err error
		switch {
		case p.Kind == npm && c.npm == nil:
			c.npm, err = findNpm()
		case p.Kind != npm && c.pip == nil:
			c.pip, err = findPip(ctx)
		}
		if err != nil && !p.Optional {
			return clients{}, err
		}
	}
	return c, nil
}

func findNpm() ([]string, error) {
	if _, err := exec.LookPath("npm"); err != nil {
		return nil, errors.New("npm is missing: install Node.js with npm (for example: apt install npm), then run this again")
	}
	return []string{"npm"}, nil
}

func findPip(ctx context.Context) ([]string, error) {
	for _, try := range [][]string{{"python3", "-m", "pip"}, {"python", "-m", "pip"}, {"pip3"}, {"pip"}} {
		if _, err := exec.LookPath(try[0]); err != nil {
			continue
		}
		if exec.CommandContext(ctx, try[0], append(slices.Clip(try[1:]), "--version")...).Run() == nil {
			return try, nil
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, errors.New("pip is missing: install Python 3 with pip (for example: apt install python3-pip), then run this again")
}

// fetch downloads a package's archive into the empty folder dir, checks its
// hashes, and returns its path. The caller removes dir.
func (c clients) fetch(ctx context.Context, p *pkg, dir string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, maxFetch)
	defer cancel()
	var err error
	switch p.Kind {
	case npm:
		args := []string{"pack", "--loglevel=error", "--ignore-scripts", p.Package + "@" + p.Version}
		err = run(ctx, dir, nil, append(slices.Clip(c.npm), args...))
	case wheel, sdist:
		err = c.pipDownload(ctx, p, dir)
	}
	if errors.Is(err, context.Canceled) {
		return "", err
	}
	if err != nil {
		return "", fmt.Errorf("%s could not download %s: %w\n  Check that %[1]s reaches its package index, then run this again; what is already there is kept",
			p.Kind.client(), p, err)
	}
	name, err := onlyFile(dir, map[kind]string{wheel: "*.whl", sdist: "*.tar.gz", npm: "*.tgz"}[p.Kind])
	if err != nil {
		return "", fmt.Errorf("%s downloaded %s: %w", p.Kind.client(), p, err)
	}
	return name, verifyArchive(name, p)
}

func (c clients) pipDownload(ctx context.Context, p *pkg, dir string) error {
	requirements := filepath.Join(dir, "requirements.txt")
	line := fmt.Sprintf("%s==%s --hash=sha256:%s\n", p.Package, p.Version, p.SHA256)
	if err := os.WriteFile(requirements, []byte(line), 0o644); err != nil {
		return err
	}
	args := append(slices.Clip(c.pip), "download", "--quiet", "--no-input", "--disable-pip-version-check",
		"--require-hashes", "--no-deps", "--dest", dir, "--requirement", requirements)
	if p.Kind == wheel {
		args = append(args, "--only-binary=:all:", "--implementation", "cp", "--python-version", p.Tag.Python,
			"--abi", p.Tag.ABI, "--platform", p.Tag.Platform)
		return run(ctx, dir, nil, args)
	}
	backend := filepath.Join(dir, "backend")
	if err := os.MkdirAll(filepath.Join(backend, "setuptools"), 0o755); err != nil {
		return err
	}
	for name, data := range map[string][]byte{"__init__.py": nil, "build_meta.py": noBuild} {
		if err := os.WriteFile(filepath.Join(backend, "setuptools", name), data, 0o644); err != nil {
			return err
		}
	}
	args = append(args, "--no-binary=:all:", "--use-pep517", "--no-build-isolation")
	env := []string{"PYTHONPATH=" + backend, "FACET_SETUP_NAME=" + p.Package, "FACET_SETUP_VERSION=" + p.Version}
	return run(ctx, dir, env, args)
}

// run runs a client in dir. It prints nothing if the client succeeds.
func run(ctx context.Context, dir string, env, args []string) error {
	var complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &complaint, &complaint
	cmd.Env = append(os.Environ(), env...)
	cmd.WaitDelay = killDelay
	err := cmd.Run()
	if err == nil {
		return nil
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("it took more than %v", maxFetch)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	lines := strings.Split(strings.TrimSpace(complaint.String()), "\n")
	// npm explains an error at the beginning of its output, pip at the end.
	if n := len(lines); n > 2*maxClientLines {
		lines = slices.Concat(lines[:maxClientLines], []string{"…"}, lines[n-maxClientLines:])
	}
	return fmt.Errorf("%w\n    %s", err, strings.Join(lines, "\n    "))
}

// onlyFile returns the only file in dir that matches the pattern.
func onlyFile(dir, pattern string) (string, error) {
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		return "", err
	}
	if len(names) != 1 {
		return "", fmt.Errorf("%d files %s where one was expected", len(names), pattern)
	}
	return names[0], nil
}
