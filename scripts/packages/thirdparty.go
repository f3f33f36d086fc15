package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// licenceFile matches the names of files with a licence or the notices that go with it.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents|copyright)([.-].*)?$`)

// thirdParties writes the licences of all that is in the program. Those of models and of ONNX Runtime
// lie beside them.
func (b *builder) thirdParties(ctx context.Context, t target, to string) error {
	modules, err := b.builtOf(ctx, b.work(t, "root", prefix, "bin", "facet"))
	if err != nil {
		return err
	}
	var all strings.Builder
	all.WriteString("facet contains the following software of others. The licences of its models and of ONNX Runtime\nare in assets.\n")
	chapter := func(title, text string) {
		fmt.Fprintf(&all, "\n%s\n%s\n\n%s\n", title, strings.Repeat("=", len(title)), strings.TrimSpace(text))
	}
	goroot, err := b.command(ctx, nil, "go", "env", "GOROOT")
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(goroot)), "LICENSE"))
	if err != nil {
		return err
	}
	chapter("The Go standard library", string(text))
	for _, m := range modules {
		texts, err := licencesIn(m.dir)
		if err != nil {
			return err
		}
		if texts == "" {
			return fmt.Errorf("%s has no file with a licence: it must not be shipped", m.path)
		}
		chapter(m.path+" "+m.version, texts)
	}
	return b.others(to, &all, chapter)
}

// others adds the console's libraries and libjpeg-turbo, whose packages bring no text, and writes the
// file.
func (b *builder) others(to string, all *strings.Builder, chapter func(title, text string)) error {
	var vendor struct{ Packages []vendored }
	if err := readJSON(filepath.Join(b.root, "node", "console", "vendor.json"), &vendor); err != nil {
		return err
	}
	for _, v := range vendor.Packages {
		text, err := b.licenceOf(v)
		if err != nil {
			return err
		}
		chapter(v.Name+" "+v.Version+" (web console)", text)
	}
	text, err := os.ReadFile(filepath.Join(b.root, "deploy", "licences", "libjpeg-turbo.txt"))
	if err != nil {
		return err
	}
	chapter("libjpeg-turbo", string(text))
	return os.WriteFile(to, []byte(all.String()), 0o644)
}

// licencesIn returns the licences in a module's folder and those of what it has taken from others.
func licencesIn(dir string) (string, error) {
	var texts []string
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "vendor") {
			return filepath.SkipDir
		}
		if !d.Type().IsRegular() || !licenceFile.MatchString(d.Name()) || strings.HasSuffix(d.Name(), ".go") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		texts = append(texts, "-- "+filepath.ToSlash(rel)+" --\n\n"+strings.TrimSpace(string(text)))
		return err
	})
	return strings.Join(texts, "\n\n"), err
}
