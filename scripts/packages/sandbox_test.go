package main

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"facet/internal/must"
)

// long says that what takes minutes is tried, with what "make packages" has left in dist.
const longVariable = "FACET_PACKAGES"

// dist returns the folder of built packages, or skips the test.
func dist(t *testing.T) string {
	t.Helper()
	dir := os.Getenv(longVariable)
	if dir == "" {
		t.Skip("$" + longVariable + " names no folder with packages: \"make test-packages\" builds them and runs this test")
	}
	return dir
}

// tool returns a program of a Debian package, from this machine or from assets/tools, with the
// variables it needs.
func tool(t *testing.T, name string) (string, []string) {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	root, err := filepath.Abs(filepath.Join(rootDir, toolsFolder, "sandbox"))
	must.Do(t, err)
	found, err := filepath.Glob(filepath.Join(root, "usr", "*bin", name))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s is not there: \"scripts/sandbox.sh\" fetches it", name)
	}
	libraries, err := filepath.Glob(filepath.Join(root, "usr", "lib", "*-linux-gnu"))
	must.Do(t, err)
	return found[0], []string{"LD_LIBRARY_PATH=" + strings.Join(libraries, ":"), "RPM_CONFIGDIR=" + filepath.Join(root, "usr", "lib", "rpm")}
}

// imageRoot unpacks the image of a processor from the archive, as a runtime would, and returns its
// folder and configuration.
func imageRoot(t *testing.T, archive, arch string) (string, *v1.ConfigFile) {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("tar", "-xf", archive, "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	index, err := layout.ImageIndexFromPath(dir)
	must.Do(t, err)
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("the archive names %+v, %v; want one image", manifest, err)
	}
	if index, err = index.ImageIndex(manifest.Manifests[0].Digest); err != nil {
		t.Fatal(err)
	}
	if manifest, err = index.IndexManifest(); err != nil {
		t.Fatal(err)
	}
	for _, m := range manifest.Manifests {
		if m.Platform.Architecture != arch {
			continue
		}
		img, err := index.Image(m.Digest)
		must.Do(t, err)
		config, err := img.ConfigFile()
		must.Do(t, err)
		root := t.TempDir()
		unpack(t, mutate.Extract(img), root)
		return root, config
	}
	t.Fatalf("the archive has no image for %s", arch)
	return "", nil
}

// unpack writes the files of a tar archive. Their owners are left out.
func unpack(t *testing.T, from io.ReadCloser, to string) {
	t.Helper()
	defer from.Close()
	for r := tar.NewReader(from); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		must.Do(t, err)
		name := filepath.Join(to, filepath.FromSlash(h.Name))
		err = os.MkdirAll(filepath.Dir(name), 0o755)
		switch h.Typeflag {
		case tar.TypeDir:
			err = errors.Join(err, os.MkdirAll(name, 0o755))
		case tar.TypeSymlink:
			err = errors.Join(err, os.Symlink(h.Linkname, name))
		case tar.TypeReg:
			var data []byte
			data, readErr := io.ReadAll(r)
			err = errors.Join(err, readErr, os.WriteFile(name, data, fs.FileMode(h.Mode).Perm()))
		}
		must.Do(t, err)
	}
}

// container runs programs of an image's root file system as a runtime would: read-only, as the
// image's user, without rights, with mounts of its own.
type container struct {
	root, user string // user is UID:GID
	binds      []bind
	env        []string
}

// bind is a folder or file of this machine that the container sees at a place, those below others
// after them.
type bind struct {
	from, place string
	readOnly    bool
}

func (c container) command(ctx context.Context, t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	bwrap, env := tool(t, "bwrap")
	id, _, _ := strings.Cut(c.user, ":")
	line := []string{
		"--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent", "--new-session",
		"--uid", id, "--gid", id, "--cap-drop", "ALL", "--clearenv", "--ro-bind", c.root, "/", "--proc", "/proc", "--dev", "/dev",
		"--tmpfs", "/tmp",
	}
	for _, b := range c.binds {
		how := "--bind"
		if b.readOnly {
			how = "--ro-bind"
		}
		line = append(line, how, b.from, b.place)
	}
	for _, e := range c.env {
		name, value, _ := strings.Cut(e, "=")
		line = append(line, "--setenv", name, value)
	}
	cmd := exec.CommandContext(ctx, bwrap, append(line, args...)...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	return cmd
}

// needsContainers skips the test where this machine lets nobody make namespaces.
func needsContainers(t *testing.T) {
	t.Helper()
	if out, err := exec.Command("unshare", "--user", "--mount", "true").CombinedOutput(); err != nil {
		t.Skipf("this machine allows no user namespaces, so that no root file system runs: %v %s", err, out)
	}
}
