package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.yaml.in/yaml/v3"
)

const maintainer = "facet maintainers <maintainers@users.noreply.invalid>"

// packages writes the .deb and the .rpm of a target, and returns their names.
func (b *builder) packages(ctx context.Context, t target) ([]string, error) {
	var names []string
	for _, kind := range []string{"deb", "rpm"} {
		file := filepath.Join(b.dist, "facet-"+b.version+"-"+t.arch+"."+kind)
		if err := b.pack(ctx, t, kind, file); err != nil {
			return nil, err
		}
		b.say("%s", filepath.Base(file))
		names = append(names, file)
	}
	return names, nil
}

// pack writes one package from what was staged.
func (b *builder) pack(ctx context.Context, t target, kind, file string) error {
	changelog, copyright, filled := b.work(t, "changelog.yaml"), b.work(t, "copyright"), b.work(t, "nfpm-"+b.version+".yaml")
	if err := errors.Join(b.writeChangelog(changelog), b.writeCopyright(copyright)); err != nil {
		return err
	}
	text, err := b.fill("deploy/nfpm/nfpm.yaml", map[string]string{
		"ARCH": t.arch, "TIME": b.epoch.Format(time.RFC3339),
		"CHANGELOG": changelog, "COPYRIGHT": copyright, "ROOT": b.work(t, "root"),
	})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filled, []byte(text), 0o644); err != nil {
		return err
	}
	_, err = b.command(ctx, []string{"SOURCE_DATE_EPOCH=" + fmt.Sprint(b.epoch.Unix())}, b.tool("packing", "bin", "nfpm"),
		"package", "--config", filled, "--packager", kind, "--target", file)
	return err
}

// fill returns a file of the source with ${VERSION} and the values in their places.
func (b *builder) fill(file string, values map[string]string) (string, error) {
	text, err := os.ReadFile(filepath.Join(b.root, filepath.FromSlash(file)))
	return os.Expand(string(text), func(name string) string {
		if name == "VERSION" {
			return b.version
		}
		return values[name]
	}), err
}

// writeChangelog writes the releases in the form of nfpm, which makes the packages' changelogs of it.
func (b *builder) writeChangelog(to string) error {
	type note struct {
		Note string `yaml:"note"`
	}
	type entry struct {
		Semver   string    `yaml:"semver"`
		Date     time.Time `yaml:"date"`
		Packager string    `yaml:"packager"`
		Deb      struct {
			Urgency       string   `yaml:"urgency"`
			Distributions []string `yaml:"distributions"`
		} `yaml:"deb"`
		Changes []note `yaml:"changes"`
	}
	var list []entry
	for _, r := range b.releases {
		e := entry{Semver: r.Version, Date: r.Date, Packager: maintainer}
		if r.Date.IsZero() {
			e.Date = b.epoch
		}
		e.Deb.Urgency, e.Deb.Distributions = "medium", []string{"stable"}
		for _, n := range r.Notes {
			e.Changes = append(e.Changes, note{n})
		}
		list = append(list, e)
	}
	raw, err := yaml.Marshal(list)
	if err != nil {
		return err
	}
	return os.WriteFile(to, raw, 0o644)
}

func (b *builder) writeCopyright(to string) error {
	licence, err := os.ReadFile(filepath.Join(b.root, "LICENSE"))
	if err != nil {
		return err
	}
	text := "facet is under the Apache License 2.0, below. The licences of what others wrote are in\n" +
		"/opt/facet/THIRD-PARTY.txt, those of the models and of ONNX Runtime beside them in /opt/facet/assets.\n\n"
	return os.WriteFile(to, append([]byte(text), licence...), 0o644)
}
