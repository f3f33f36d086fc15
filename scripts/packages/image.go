package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// user is the id of the image's user, "nonroot" of distroless images.
const user = 65532

// image writes an OCI archive with an image for each target, and returns its name.
func (b *builder) image(ctx context.Context) (string, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, t := range b.targets {
		platform := v1.Platform{OS: "linux", Architecture: t.arch}
		base, err := b.baseImage(ctx, t, platform)
		if err != nil {
			return "", err
		}
		img, err := b.withProgram(base, t)
		if err != nil {
			return "", fmt.Errorf("assemble for %s: %w", t.arch, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &platform}})
	}
	// An archive with one entry that names all platforms: what podman, skopeo and crane load.
	whole := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{
		Add: index, Descriptor: v1.Descriptor{Annotations: map[string]string{"org.opencontainers.image.ref.name": b.version}},
	})
	dir := filepath.Join(b.dist, "work", "image")
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	if _, err := layout.Write(dir, whole); err != nil {
		return "", err
	}
	digest, err := index.Digest()
	if err != nil {
		return "", err
	}
	file := filepath.Join(b.dist, "facet-"+b.version+"-image.tar")
	b.say("image %s, digest %s", filepath.Base(file), digest)
	return file, writeArchive(file, b.epoch, func(a archive) error { return a.add(dir, "", nil) })
}

// withProgram adds two layers to a base: models and libraries, which rarely change, and the rest.
func (b *builder) withProgram(base v1.Image, t target) (v1.Image, error) {
	isAsset := func(rel string) bool {
		assets := prefix + "/assets"
		return strings.HasPrefix(assets, rel) || strings.HasPrefix(rel, assets+"/")
	}
	assets, err := b.layer(t, "assets", func(a archive) error { return a.add(b.work(t, "root"), "", isAsset) })
	if err != nil {
		return nil, err
	}
	program, err := b.layer(t, "program", func(a archive) error {
		if err := a.add(b.work(t, "root"), "", func(rel string) bool { return !isAsset(rel) || rel == prefix || rel == "opt" }); err != nil {
			return err
		}
		return a.folder("var/lib/facet", 0o700, user)
	})
	if err != nil {
		return nil, err
	}
	img, err := mutate.AppendLayers(base, assets, program)
	if err != nil {
		return nil, err
	}
	return b.configure(img, t)
}

// configure sets how the image runs, and its labels.
func (b *builder) configure(img v1.Image, t target) (v1.Image, error) {
	old, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	c := old.DeepCopy()
	c.OS, c.Architecture, c.Created = "linux", t.arch, v1.Time{Time: b.epoch}
	for i := range c.History {
		c.History[i].Created = v1.Time{Time: b.epoch}
	}
	c.Config = v1.Config{
		User:       fmt.Sprintf("%d:%d", user, user),
		Entrypoint: []string{"/" + prefix + "/bin/facet"},
		Cmd:        []string{"serve", "--config", "/var/lib/facet/facet.yaml"},
		Env: []string{
			"PATH=/" + prefix + "/bin", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt",
			"FACET_LOG_FORMAT=json", "FACET_PROFILE=/var/lib/facet/profile.yaml",
		},
		Volumes:      map[string]struct{}{"/var/lib/facet": {}},
		ExposedPorts: map[string]struct{}{"7420/tcp": {}, "7421/tcp": {}, "7421/udp": {}, "7422/tcp": {}},
		StopSignal:   "SIGTERM",
		Labels: map[string]string{
			"org.opencontainers.image.title":     "facet",
			"org.opencontainers.image.version":   b.version,
			"org.opencontainers.image.revision":  b.commit,
			"org.opencontainers.image.created":   b.epoch.Format("2006-01-02T15:04:05Z"),
			"org.opencontainers.image.licenses":  "Apache-2.0",
			"org.opencontainers.image.base.name": b.base,
		},
	}
	return mutate.ConfigFile(img, c)
}

// layer writes a layer's archive to the work folder and returns it.
func (b *builder) layer(t target, what string, fill func(archive) error) (v1.Layer, error) {
	file := b.work(t, "layer-"+what+".tar")
	if err := writeArchive(file, b.epoch, fill); err != nil {
		return nil, err
	}
	return tarball.LayerFromFile(file, tarball.WithMediaType(types.OCILayer))
}

// baseImage returns the image that -base names, or one of the distribution's packages.
func (b *builder) baseImage(ctx context.Context, t target, platform v1.Platform) (v1.Image, error) {
	if b.base == "" {
		return b.debianBase(ctx, t)
	}
	ref, err := name.NewDigest(b.base)
	if err != nil {
		return nil, fmt.Errorf("the base must be pinned as NAME@sha256:…: \"go run ./scripts/packages digest NAME:TAG\" prints it (%w)", err)
	}
	img, err := remote.Image(ref, remote.WithContext(ctx), remote.WithPlatform(platform))
	if err != nil {
		return nil, fmt.Errorf("fetch the base: %w", err)
	}
	return ociMediaTypes(img)
}

// ociMediaTypes turns an image in Docker's format into one of OCI's.
func ociMediaTypes(img v1.Image) (v1.Image, error) {
	layers, err := img.Layers()
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	out := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for i, l := range layers {
		history := v1.History{}
		if i < len(config.History) {
			history = config.History[i]
		}
		if out, err = mutate.Append(out, mutate.Addendum{Layer: l, History: history, MediaType: types.OCILayer}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// pinned returns an image's name with its digest.
func pinned(ctx context.Context, image string) (string, error) {
	ref, err := name.ParseReference(image)
	if err != nil {
		return "", err
	}
	found, err := remote.Head(ref, remote.WithContext(ctx))
	if err != nil {
		return "", fmt.Errorf("ask the registry for %s: %w", image, err)
	}
	return ref.Context().Name() + "@" + found.Digest.String(), nil
}
