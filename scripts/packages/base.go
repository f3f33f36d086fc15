package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// basePackages are what facet and ONNX Runtime need of a distribution: C and C++ library, the
// authorities of object stores, and the distribution's name.
var basePackages = []string{"base-files", "ca-certificates", "libc6", "libgcc-s1", "libstdc++6"}

// baseKept are the folders that the base takes out of them. The rest is manuals, translations,
// scripts and character sets.
var baseKept = []string{
	"usr/lib/os-release", "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib/ld-linux-aarch64.so.1", "usr/share/ca-certificates", "usr/share/common-licenses", "usr/share/doc",
}

const (
	authorities = "usr/share/ca-certificates/mozilla"
	gconv       = "/gconv/"
)

// debs returns the files of the base's packages, and downloads them if they are missing.
func (b *builder) debs(ctx context.Context, t target) ([]string, error) {
	dir := filepath.Join(b.root, debianFolder, t.arch)
	find := func() []string {
		list, _ := filepath.Glob(filepath.Join(dir, "*.deb"))
		return list
	}
	if len(find()) != len(basePackages) {
		if err := os.RemoveAll(dir); err != nil {
			return nil, err
		}
		if _, err := b.command(ctx, nil, "scripts/debian.sh", append([]string{"-a", t.arch, dir}, basePackages...)...); err != nil {
			return nil, fmt.Errorf("%w\nno -base was given, so that it is made of this distribution's packages", err)
		}
	}
	return find(), nil
}

// debianBase returns an image of the distribution's packages: no shell, no package manager, a user
// that is not root.
func (b *builder) debianBase(ctx context.Context, t target) (v1.Image, error) {
	debs, err := b.debs(ctx, t)
	if err != nil {
		return nil, err
	}
	root := b.work(t, "base")
	if err := os.RemoveAll(root); err != nil {
		return nil, err
	}
	records := map[string]string{}
	for _, deb := range debs {
		if _, err := b.command(ctx, nil, "dpkg-deb", "--extract", deb, root); err != nil {
			return nil, err
		}
		control, err := b.command(ctx, nil, "dpkg-deb", "--field", deb)
		if err != nil {
			return nil, err
		}
		name, _, _ := strings.Cut(filepath.Base(deb), "_")
		records[name] = string(control)
	}
	if err := mergeUsr(root); err != nil {
		return nil, err
	}
	layer, err := b.layer(t, "base", func(a archive) error { return fillBase(a, root, records) })
	if err != nil {
		return nil, err
	}
	oci := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	return mutate.AppendLayers(oci, layer)
}

// mergeUsr moves /lib and /lib64 to /usr: the image has links there, like the distribution.
func mergeUsr(root string) error {
	for _, dir := range []string{"lib", "lib64"} {
		from := filepath.Join(root, dir)
		if _, err := os.Stat(from); err != nil {
			continue
		}
		if out, err := exec.Command("cp", "-a", from, filepath.Join(root, "usr")).CombinedOutput(); err != nil {
			return fmt.Errorf("merge %s: %w\n%s", dir, err, out)
		}
	}
	return nil
}

func fillBase(a archive, root string, records map[string]string) error {
	keep := func(rel string) bool {
		if strings.Contains(rel, gconv) || strings.HasPrefix(rel, "usr/share/doc/") && strings.Contains(rel, ".") {
			return false
		}
		return slices.ContainsFunc(append(baseKept, "usr/lib64"), func(kept string) bool {
			return rel == kept || strings.HasPrefix(rel, kept+"/") || strings.HasPrefix(kept, rel+"/")
		})
	}
	if err := a.add(root, "", keep); err != nil {
		return err
	}
	for _, dir := range []string{"dev", "proc", "sys", "run", "home", "root"} {
		if err := a.folder(dir, 0o755, 0); err != nil {
			return err
		}
	}
	for _, dir := range []string{"tmp", "var/tmp"} {
		if err := a.folder(dir, 0o1777, 0); err != nil {
			return err
		}
	}
	bundle, err := bundleOf(filepath.Join(root, authorities))
	if err != nil {
		return err
	}
	texts := map[string]string{
		"etc/passwd":                        fmt.Sprintf("root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:%d:%d:nonroot:/var/lib/facet:/sbin/nologin\n", user, user),
		"etc/group":                         fmt.Sprintf("root:x:0:\nnonroot:x:%d:\n", user),
		"etc/nsswitch.conf":                 "hosts: files dns\n",
		"etc/ssl/certs/ca-certificates.crt": bundle,
	}
	for name, record := range records {
		texts["var/lib/dpkg/status.d/"+name] = record // what scanners read
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if err := a.text(name, texts[name]); err != nil {
			return err
		}
	}
	return errors.Join(a.link("lib", "usr/lib"), a.link("lib64", "usr/lib64"))
}

// bundleOf returns the certificates of a folder in one text.
func bundleOf(dir string) (string, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.crt"))
	if err != nil || len(names) < 50 {
		return "", fmt.Errorf("the package ca-certificates has only %d authorities (%w)", len(names), err)
	}
	var all strings.Builder
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		all.Write(data)
	}
	return all.String(), nil
}
