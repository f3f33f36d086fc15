package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// prefix is the folder of the program, as the unit and the guide name it.
const prefix = "opt/facet"

// stage makes the folder of what is installed: program, models, libraries, licences and the guide.
// Its files have the commit's time and no other rights than they need.
func (b *builder) stage(ctx context.Context, t target) error {
	root := b.work(t, "root")
	if err := os.RemoveAll(root); err != nil {
		return err
	}
	to := filepath.Join(root, prefix)
	if err := os.MkdirAll(filepath.Join(to, "bin"), 0o755); err != nil {
		return err
	}
	if err := b.compile(ctx, t, filepath.Join(to, "bin", "facet")); err != nil {
		return err
	}
	libraries, err := b.libraries(ctx, t)
	if err != nil {
		return err
	}
	for from, dir := range map[string]string{libraries: "assets/lib", filepath.Join(b.root, "assets", "packs"): "assets/packs"} {
		if err := os.CopyFS(filepath.Join(to, dir), os.DirFS(from)); err != nil {
			return fmt.Errorf("%w: \"make setup\" fetches the models and libraries", err)
		}
	}
	for _, pages := range []string{"docs", "docs/interface"} {
		if err := copyMatches(filepath.Join(b.root, pages), filepath.Join(to, pages), "*.md"); err != nil {
			return err
		}
	}
	for _, file := range []string{"LICENSE", "CONTACT"} {
		if err := copyMatches(b.root, to, file); err != nil {
			return err
		}
	}
	if err := b.thirdParties(ctx, t, filepath.Join(to, "THIRD-PARTY.txt")); err != nil {
		return err
	}
	return b.normalise(root)
}

// compile builds the program with a C compiler that is the same on every machine.
func (b *builder) compile(ctx context.Context, t target, to string) error {
	// The compiler is found by PATH: its folder would become part of the program's build id. It strips
	// debugging information, in which Zig's own start files have the working folder.
	path := b.tool("packing", "ziglang") + string(filepath.ListSeparator) + os.Getenv("PATH")
	_, err := b.command(ctx, []string{
		"GOWORK=off", "CGO_ENABLED=1", "GOOS=linux", "GOARCH=" + t.arch, "GOFLAGS=", "CGO_CFLAGS=-O2 -g0", "PATH=" + path, "CC=zig cc -target " + t.zig,
	}, "go", "build", "-trimpath", "-buildvcs=false", "-tags", "hashicorpmetrics", "-ldflags", "-s -w -extldflags=-Wl,--strip-all -X facet/node/wire.commit="+b.commit, "-o", to, "./cmd/facet")
	return err
}

// libraries returns the folder with ONNX Runtime and libjpeg-turbo for the target.
func (b *builder) libraries(ctx context.Context, t target) (string, error) {
	if t.arch == runtime.GOARCH && runtime.GOOS == "linux" {
		return filepath.Join(b.root, "assets", "lib"), nil
	}
	to := filepath.Join(b.root, toolsFolder, "libraries", t.arch)
	_, err := b.command(ctx, nil, "go", "run", "./scripts/setup", "-libraries", to, "-platform", "linux/"+t.arch)
	return filepath.Join(to, "lib"), err
}

func copyMatches(from, to, pattern string) error {
	names, err := filepath.Glob(filepath.Join(from, pattern))
	if err != nil || len(names) == 0 {
		return fmt.Errorf("%s: there is no %s (%w)", from, pattern, err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err == nil {
			err = os.MkdirAll(to, 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(to, filepath.Base(name)), data, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// normalise gives everything below root the same rights and time on every machine.
func (b *builder) normalise(root string) error {
	program := filepath.Join(root, prefix, "bin", "facet")
	return filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if d.IsDir() || name == program {
			mode = 0o755
		}
		return errors.Join(os.Chmod(name, mode), os.Chtimes(name, b.epoch, b.epoch))
	})
}
