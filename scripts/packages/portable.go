package main

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"facet/engine/models"
)

// portable writes packages for pip and npm, which install without rights, and returns their names.
func (b *builder) portable(t target) ([]string, error) {
	wheel := filepath.Join(b.dist, "facet-"+b.python()+"-"+t.tag()+".whl")
	tarball := filepath.Join(b.dist, "facet-"+b.version+"-npm-"+t.arch+".tgz")
	if err := b.wheel(t, wheel); err != nil {
		return nil, err
	}
	b.say("%s", filepath.Base(wheel))
	if err := b.tarball(t, tarball); err != nil {
		return nil, err
	}
	b.say("%s", filepath.Base(tarball))
	return []string{wheel, tarball}, nil
}

// tag names Python's processor and the oldest C library. Any version of Python will do.
func (t target) tag() string {
	cpu, glibc, _ := strings.Cut(t.zig, "-linux-gnu.")
	return "py3-none-manylinux_" + strings.ReplaceAll(glibc, ".", "_") + "_" + cpu
}

// python returns the version as Python writes it.
func (b *builder) python() string { return strings.Replace(b.version, "-dev", ".dev0", 1) }

// carried reports whether the packages for pip and npm have a path of the program's folder: no
// pages, and no packs but that of new clusters.
func carried(rel string) bool {
	const packs = "assets/packs/"
	pack, below := strings.CutPrefix(filepath.ToSlash(rel), packs)
	return !strings.HasPrefix(rel, "docs") && (!below || pack == models.FoundingPack || strings.HasPrefix(pack, models.FoundingPack+"/"))
}

// tarball writes the package for npm.
func (b *builder) tarball(t target, to string) error {
	cpu := map[string]string{"amd64": "x64", "arm64": "arm64"}[t.arch]
	text, err := b.fill("deploy/npm/package.json", map[string]string{"CPU": cpu})
	if err != nil {
		return err
	}
	return writeArchive(to, b.epoch, func(a archive) error {
		return errors.Join(a.text("package/package.json", text), a.add(b.work(t, "root", prefix), "package", carried))
	})
}

// wheel writes the package for pip.
func (b *builder) wheel(t target, to string) (err error) {
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	defer f.Close() // twice if all went well
	w := wheel{Writer: zip.NewWriter(f), b: b, info: "facet-" + b.python() + ".dist-info/"}
	if err := w.fill(t); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(to), err)
	}
	return errors.Join(w.Close(), f.Close())
}

// wheel is a package for pip (packaging.python.org, "Binary distribution format").
type wheel struct {
	*zip.Writer
	b      *builder
	info   string          // the folder of what is about the package
	record strings.Builder // the files with their sums
}

func (w *wheel) fill(t target) error {
	metadata, err := w.b.fill("deploy/wheel/METADATA", map[string]string{"PYTHON": w.b.python()})
	if err != nil {
		return err
	}
	root := w.b.work(t, "root", prefix)
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil || !carried(rel) {
			return err
		}
		return w.copy("facet/"+filepath.ToSlash(rel), name)
	})
	if err != nil {
		return err
	}
	return errors.Join(
		w.copy("facet/__init__.py", filepath.Join(w.b.root, "deploy", "wheel", "__init__.py")),
		w.copy(w.info+"licenses/LICENSE", filepath.Join(root, "LICENSE")),
		w.copy(w.info+"licenses/THIRD-PARTY.txt", filepath.Join(root, "THIRD-PARTY.txt")),
		w.add(w.info+"METADATA", 0o644, strings.NewReader(metadata)),
		w.add(w.info+"WHEEL", 0o644, strings.NewReader("Wheel-Version: 1.0\nGenerator: facet\nRoot-Is-Purelib: false\nTag: "+t.tag()+"\n")),
		w.add(w.info+"entry_points.txt", 0o644, strings.NewReader("[console_scripts]\nfacet = facet:main\n")),
		w.add(w.info+"RECORD", 0o644, strings.NewReader(w.record.String()+w.info+"RECORD,,\n")),
	)
}

// copy adds a file.
func (w *wheel) copy(name, from string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if info.Mode()&0o100 != 0 { // whatever the umask was
		mode = 0o755
	}
	return w.add(name, mode, f)
}

func (w *wheel) add(name string, mode fs.FileMode, from io.Reader) error {
	h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: w.b.epoch}
	h.SetMode(mode)
	to, err := w.CreateHeader(h)
	if err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(to, sum), from)
	fmt.Fprintf(&w.record, "%s,sha256=%s,%d\n", name, base64.RawURLEncoding.EncodeToString(sum.Sum(nil)), n)
	return err
}
