package models

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxListed is the most entries in a folder that List reads.
const maxListed = 1000

// Listed is a folder with a manifest.
type Listed struct {
	// Name is the folder's name in the listed directory.
	Name string
	// Pack is the pack, with its files unchecked, or nil if Err is not.
	Pack *Pack
	Err  error
}

// List returns the packs in the folders of dir, in the order of their names. It reads manifests
// only; Pack.Verify checks the files. It leaves out folders without a manifest, and lists an
// unusable manifest with its error.
func List(dir string) ([]Listed, error) {
	entries, err := readDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list model packs: %w", err)
	}
	var out []Listed
	for _, e := range entries {
		p, err := Read(filepath.Join(dir, e.Name()))
		if errors.Is(err, fs.ErrNotExist) || !e.IsDir() && err != nil {
			continue
		}
		out = append(out, Listed{Name: e.Name(), Pack: p, Err: err})
	}
	return out, nil
}

// readDir is os.ReadDir for at most maxListed entries.
func readDir(dir string) ([]fs.DirEntry, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	entries, err := d.ReadDir(maxListed + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(entries) > maxListed {
		return nil, fmt.Errorf("more than %d entries", maxListed)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// Checked is the result of Verify for one file.
type Checked struct {
	File File
	// Err is nil if size and SHA-256 match the manifest. Else it wraps ErrPack or comes from the
	// file system.
	Err error
}

// Verify reads every file of the pack and compares its size and SHA-256 with the manifest. The
// results are in the manifest's order. The error joins those of the files.
func (p *Pack) Verify() ([]Checked, error) {
	out := make([]Checked, len(p.Manifest.Files))
	errs := make([]error, len(out))
	for i, f := range p.Manifest.Files {
		errs[i] = p.check(f, io.Discard)
		out[i] = Checked{File: f, Err: errs[i]}
	}
	return out, errors.Join(errs...)
}
