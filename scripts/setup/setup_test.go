package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"facet/engine/models"
)

// pinned is the result that the text is, at a place.
func pinned(to, text string) result {
	sum := sha256.Sum256([]byte(text))
	return result{To: to, Size: int64(len(text)), SHA256: hex.EncodeToString(sum[:])}
}

// npmPackage is a package of one file, photos/x with the text "hello", and its
// archive.
func npmPackage(t *testing.T) (*pkg, []byte) {
	t.Helper()
	archive := tarGz(t, entry{name: "package/x", body: "hello"})
	sum := sha512.Sum512(archive)
	p := &pkg{
		Package: "sample", Version: "1.0.0", Kind: npm, Licence: "none", About: "a sample",
		Integrity: "sha512-" + base64.StdEncoding.EncodeToString(sum[:]),
		Members:   []member{{Path: "package/x", result: pinned("photos/x", "hello")}},
	}
	r := pinned("", string(archive))
	p.Size, p.SHA256 = r.Size, r.SHA256
	return p, archive
}

// client writes a shell script that takes the part of npm, and returns it as a
// command. The archive lies beside it as $ARCHIVE.
func client(t *testing.T, archive []byte, script string) clients {
	t.Helper()
	dir := t.TempDir()
	for name, data := range map[string][]byte{"archive": archive, "npm": []byte("#!/bin/sh\nARCHIVE=\"$(dirname \"$0\")/archive\"\n" + script)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return clients{npm: []string{filepath.Join(dir, "npm")}}
}

// Packages are unpacked once, and the next set-up finds them right.
func TestFetchedPackagesAreReused(t *testing.T) {
	t.Parallel()
	p, archive := npmPackage(t)
	c := client(t, archive, `[ "$*" = "pack --loglevel=error --ignore-scripts sample@1.0.0" ] && cp "$ARCHIVE" sample-1.0.0.tgz`)
	var out bytes.Buffer
	s := &setup{
		assets: t.TempDir(), packages: []*pkg{p}, out: &out,
		copies: []copied{{From: "photos/x", result: pinned("photos/x", "hello")}},
	}
	before, err := s.plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(before.fetch) != 1 || before.nMissing != 2 {
		t.Errorf("plan for an empty folder is %+v, want one package and 2 files missing", before)
	}
	work := func(ctx context.Context, tmp string) error { return s.bring(ctx, c, p, tmp) }
	if err := s.locked(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	after, err := s.plan(t.Context())
	if err != nil || !after.empty() {
		t.Errorf("plan after the fetch is %+v, error %v; want none", after, err)
	}
	if !strings.Contains(out.String(), "sample 1.0.0") {
		t.Errorf("it said %q, want the package's name", out.String())
	}
	left, err := filepath.Glob(filepath.Join(s.assets, "cache", "tmp-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("temporary folders %v are left, error %v", left, err)
	}
	// One changed byte, and it is fetched again.
	if err := os.WriteFile(filepath.Join(s.assets, "photos", "x"), []byte("hellO"), 0o600); err != nil {
		t.Fatal(err)
	}
	if again, err := s.plan(t.Context()); err != nil || len(again.fetch) != 1 {
		t.Errorf("plan after a change is %+v, error %v; want the package", again, err)
	}
}

// isEmpty fails the test if a folder contains anything.
func isEmpty(t *testing.T, dir string) {
	t.Helper()
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		t.Errorf("%v is there, error %v; want nothing", names, err)
	}
}

// A failed or wrong download ends with one clear error.
func TestWrongDownloadLeavesNoFile(t *testing.T) {
	t.Parallel()
	p, archive := npmPackage(t)
	f := func(want, script string) {
		t.Helper()
		s := &setup{assets: t.TempDir(), packages: []*pkg{p}, out: new(bytes.Buffer)}
		err := s.fetch(t.Context(), client(t, archive, script), p, t.TempDir())
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "sample 1.0.0") {
			t.Errorf("error is %v, want one that says %q and names the package", err, want)
		}
		isEmpty(t, s.assets)
	}
	f("no route to registry", `echo "no route to registry" >&2; exit 1`)
	f("run this again", `exit 1`)
	f("0 files", `exit 0`)
	f("2 files", `cp "$ARCHIVE" a.tgz; cp "$ARCHIVE" b.tgz`)
	f(errHash.Error(), `echo other > a.tgz`)
	f(errHash.Error(), `cp "$ARCHIVE" a.tgz; echo >> a.tgz`)
	p.Members[0].result = pinned("photos/x", "jello") // the archive is right, its file isn't
	f(errHash.Error(), `cp "$ARCHIVE" a.tgz`)
}

func TestPlaceKeepsOldFileOnError(t *testing.T) {
	t.Parallel()
	assets, tmp := t.TempDir(), t.TempDir()
	f := func(text string, want result, ok bool) {
		t.Helper()
		err := place(assets, tmp, want, strings.NewReader(text))
		if (err == nil) != ok || (!ok && !errors.Is(err, errHash)) {
			t.Errorf("place(%q): %v, want success %v", text, err, ok)
		}
		got, err := os.ReadFile(filepath.Join(assets, "lib", "f"))
		if err != nil || string(got) != "good" {
			t.Errorf("after place(%q) the file is %q, error %v; want \"good\"", text, got, err)
		}
		isEmpty(t, tmp)
	}
	f("good", pinned("lib/f", "good"), true)
	f("evil", pinned("lib/f", "lamb"), false)
	f("long", pinned("lib/f", "lo"), false)
	f("lo", pinned("lib/f", "long"), false)
}

func TestSecondSetUpWaits(t *testing.T) {
	t.Parallel()
	assets := t.TempDir()
	first := &setup{assets: assets, out: new(bytes.Buffer)}
	err := first.locked(t.Context(), func(ctx context.Context, tmp string) error {
		ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		var out bytes.Buffer
		second := &setup{assets: assets, out: &out}
		err := second.locked(ctx, func(context.Context, string) error { return errors.New("both work at once") })
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(out.String(), "waiting") {
			return fmt.Errorf("second set-up: %w, said %q; want it to wait", err, out.String())
		}
		if _, err := os.Stat(tmp); err != nil {
			return fmt.Errorf("the first one's folder: %w", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestPipDownloadRunsNoSource gives pip an archive whose
// setup.py leaves a mark when it runs.
func TestPipDownloadRunsNoSource(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mark := filepath.Join(dir, "mark")
	archive := tarGz(t,
		entry{name: "facet_sample-1.0/PKG-INFO", body: "Metadata-Version: 1.0\nName: facet_sample\nVersion: 1.0\n"},
		entry{name: "facet_sample-1.0/setup.py", body: fmt.Sprintf("open(%q, 'w').close()\nfrom setuptools import setup\nsetup(name='facet_sample', version='1.0')\n", mark)},
		entry{name: "facet_sample-1.0/x", body: "hello"})
	index := filepath.Join(dir, "index")
	if err := os.Mkdir(index, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(index, "facet_sample-1.0.tar.gz"), archive, 0o600); err != nil {
		t.Fatal(err)
	}
	r := pinned("", string(archive))
	p := &pkg{Package: "facet_sample", Version: "1.0", Kind: sdist, Size: r.Size, SHA256: r.SHA256}
	pip, err := findPip(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// The folder takes the index's place, so that the test needs no network.
	c := clients{pip: append([]string{"env", "PIP_CONFIG_FILE=/dev/null", "PIP_NO_INDEX=1", "PIP_FIND_LINKS=" + index}, pip...)}
	name, err := c.fetch(t.Context(), p, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, archive) {
		t.Errorf("downloaded %d bytes, error %v; want the %d of the archive", len(got), err, len(archive))
	}
	if _, err := os.Stat(mark); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("setup.py ran (%v)", err)
	}
}

// TestAssetsMatchLockFile needs the set-up to have run, as
// `make test` does.
func TestAssetsMatchLockFile(t *testing.T) {
	t.Parallel()
	l, err := parseLock(readLock(t))
	if err != nil {
		t.Fatal(err)
	}
	packages, err := l.packages(runtime.GOOS + "/" + runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	// What is optional may not have been there to fetch.
	packages = slices.DeleteFunc(packages, func(p *pkg) bool { return p.Optional })
	s := &setup{assets: assetsDir, packages: packages, conversions: l.Conversions, copies: l.Copies, out: new(bytes.Buffer)}
	todo, err := s.plan(t.Context())
	if err != nil || !todo.empty() {
		t.Fatalf("%+v is to be done, error %v (go run ./scripts/setup does it)", todo, err)
	}
	pack, err := models.Open(filepath.Join(assetsDir, "packs", "default"))
	if err != nil {
		t.Fatal(err)
	}
	var roles []models.Role
	for _, f := range pack.Manifest.Files {
		roles = append(roles, f.Role)
	}
	want := []models.Role{models.RoleDetector, models.RoleLandmarks, models.RoleEmbedder, models.RoleBasis}
	if diff := cmp.Diff(want, roles); diff != "" {
		t.Errorf("roles (-want +got):\n%s", diff)
	}
}

// Each pack has the licences that its files are under, and says what is not known of them.
func TestPacksHaveNotices(t *testing.T) {
	t.Parallel()
	for _, name := range models.Names() {
		dir := filepath.Join(assetsDir, "packs", name)
		raw, err := os.ReadFile(filepath.Join(dir, models.NoticeName))
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{"licence: MIT", "trained on"} {
			if !strings.Contains(string(raw), part) {
				t.Errorf("the notice of %s has no %q:\n%s", name, part, raw)
			}
		}
		if licences, err := filepath.Glob(filepath.Join(dir, "LICENSE*")); err != nil || len(licences) == 0 {
			t.Errorf("%s has no licence: %v", name, err)
		}
	}
}

// A conversion whose source is another file than the locked one leaves no model.
func TestConversionNeedsItsSource(t *testing.T) {
	t.Parallel()
	assets := t.TempDir()
	path := filepath.Join(assets, "cache", "w")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := conversion{Kind: sface, From: "cache/w", Model: pinned("packs/p/m", "model")}
	s := &setup{assets: assets, conversions: []conversion{c}, copies: []copied{{From: "cache/w", result: pinned("packs/p/d", "x")}}, out: new(bytes.Buffer)}
	todo, err := s.plan(t.Context())
	if err != nil || len(todo.convert) != 1 || len(todo.copy) != 1 {
		t.Fatalf("plan is %+v, error %v; want a conversion and a copy", todo, err)
	}
	if err := s.convert(t.Context(), todo.convert[0], filepath.Join(assetsDir, "venv", "bin", "python"), t.TempDir()); err == nil || !strings.Contains(err.Error(), "convert cache/w") {
		t.Errorf("made of no weights: %v", err)
	}
	if _, err := os.Stat(filepath.Join(assets, "packs")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a part of it is there: %v", err)
	}
	if err := s.copy(todo.copy[0], t.TempDir()); err != nil {
		t.Error(err)
	}
	if todo, err = s.plan(t.Context()); err != nil || len(todo.convert) != 1 || len(todo.copy) != 0 {
		t.Errorf("plan after the copy is %+v, error %v", todo, err)
	}
}
