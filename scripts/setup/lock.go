package main

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/go-json-experiment/json"
)

// Limits of the lock file.
const (
	maxLockBytes    = 1 << 20
	maxArchiveBytes = 256 << 20
	maxMemberBytes  = 128 << 20
)

// kind is the client that fetches a package, and the form of the package.
type kind string

const (
	wheel kind = "wheel" // pip, a zip
	sdist kind = "sdist" // pip, a source distribution, tar.gz
	npm   kind = "npm"   // npm, tar.gz
)

// client returns the name of the command that fetches packages of this kind, for
// messages.
func (k kind) client() string {
	if k == npm {
		return "npm"
	}
	return "pip"
}

// lock is the content of assets/lock.json. Only this file determines what is
// fetched, so change a version or a hash only there.
type lock struct {
	Format      int          `json:"format"`
	Packages    []pkg        `json:"packages"`
	Conversions []conversion `json:"conversions"`
	// Copies are files that two packs have.
	Copies []copied `json:"copies"`
}

// pkg is one archive of a package registry, and the list of its members that
// setup unpacks.
type pkg struct {
	Package string `json:"package"`
	Version string `json:"version"`
	Kind    kind   `json:"kind"`
	// Platform is GOOS/GOARCH if the package is for that platform only.
	Platform string `json:"platform,omitempty"`
	// Optional reports whether facet works without the package (see bring).
	Optional bool `json:"optional,omitempty"`
	// Tag chooses one wheel of a version. It does not depend on the Python that
	// runs pip.
	Tag       *wheelTag `json:"tag,omitempty"`
	Size      int64     `json:"size"`
	SHA256    string    `json:"sha256"`
	Integrity string    `json:"integrity,omitempty"` // npm's sha512-…
	Licence   string    `json:"licence"`
	About     string    `json:"about"`
	Members   []member  `json:"members"`
}

type wheelTag struct {
	Python   string `json:"python"`
	ABI      string `json:"abi"`
	Platform string `json:"platform"`
}

// member is one file of an archive. Path is its path in the archive; result
// describes the unpacked file.
type member struct {
	Path string `json:"path"`
	result
}

// result is one file under assets/.
type result struct {
	To     string `json:"to"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

func (p *pkg) String() string { return p.Package + " " + p.Version }

// everywhere reports whether the package is the same on all platforms.
func (p *pkg) everywhere() bool { return p.Platform == "" }

func parseLock(data []byte) (*lock, error) {
	if len(data) > maxLockBytes {
		return nil, fmt.Errorf("lock file is larger than %d bytes", maxLockBytes)
	}
	l := new(lock)
	if err := json.Unmarshal(data, l, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("lock file: %w", err)
	}
	if l.Format != 1 {
		return nil, fmt.Errorf("lock file: format is %d, not 1", l.Format)
	}
	for i := range l.Packages {
		if err := l.Packages[i].validate(); err != nil {
			return nil, fmt.Errorf("lock file: package %d (%s): %w", i, l.Packages[i].Package, err)
		}
	}
	for i := range l.Conversions {
		if err := l.Conversions[i].validate(); err != nil {
			return nil, fmt.Errorf("lock file: conversion %d: %w", i, err)
		}
	}
	for i := range l.Copies {
		c := &l.Copies[i]
		from := result{To: c.From, Size: c.Size, SHA256: c.SHA256}
		if err := errors.Join(from.validate(), c.validate()); err != nil {
			return nil, fmt.Errorf("lock file: copy %d: %w", i, err)
		}
	}
	return l, nil
}

func (p *pkg) validate() error {
	switch p.Kind {
	case wheel, sdist, npm:
	default:
		return fmt.Errorf("kind %q is unknown", p.Kind)
	}
	// Names and versions become arguments of commands.
	for _, s := range []string{p.Package, p.Version} {
		if s == "" || s[0] == '-' || strings.ContainsAny(s, " \t\r\n;=<>") {
			return fmt.Errorf("name or version %q is not plain", s)
		}
	}
	if (p.Kind == npm) != strings.HasPrefix(p.Integrity, "sha512-") {
		return errors.New("an npm package, and no other, has an integrity of sha512")
	}
	if (p.Kind == wheel) != (p.Tag != nil) {
		return errors.New("a wheel, and no other, has a tag")
	}
	if p.Size < 1 || p.Size > maxArchiveBytes || len(p.SHA256) != 64 || len(p.Members) == 0 {
		return errors.New("size, sha256 or members are missing or out of bounds")
	}
	for _, m := range p.Members {
		if m.Path == "" {
			return errors.New("a member has no path")
		}
		if err := m.validate(); err != nil {
			return err
		}
	}
	return nil
}

func (r *result) validate() error {
	dir, _, _ := strings.Cut(r.To, "/")
	switch {
	case path.Clean(r.To) != r.To || strings.Contains(r.To, "..") || strings.ContainsAny(r.To, `\:`):
		return fmt.Errorf("%q is not a plain path", r.To)
	case dir != "lib" && dir != "packs" && dir != "photos" && dir != "cache":
		return fmt.Errorf("%q is not in lib, packs, photos or cache", r.To)
	case r.Size < 0 || r.Size > maxMemberBytes || len(r.SHA256) != 64:
		return fmt.Errorf("%q: size or sha256 is out of bounds", r.To)
	}
	return nil
}

// packages returns the packages for the platform (GOOS/GOARCH). It returns an
// error if the lock file has packages for single platforms but none for this one.
func (l *lock) packages(platform string) ([]*pkg, error) {
	var out []*pkg
	var others []string
	found := false
	for i := range l.Packages {
		p := &l.Packages[i]
		switch p.Platform {
		case "":
			out = append(out, p)
		case platform:
			out, found = append(out, p), true
		default:
			others = append(others, p.Platform)
		}
	}
	if !found && len(others) > 0 {
		return nil, fmt.Errorf("no ONNX Runtime is pinned for %s (there is one for %s): add it to assets/lock.json",
			platform, strings.Join(others, ", "))
	}
	return out, nil
}
