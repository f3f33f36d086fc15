package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"facet/internal/must"
)

// newTestBuilder returns a builder with a staged program of a few bytes.
func newTestBuilder(t *testing.T) *builder {
	t.Helper()
	b := &builder{root: rootDir, dist: t.TempDir(), out: io.Discard, version: "1.2.3", epoch: time.Unix(1e9, 0).UTC(), commit: "abc", targets: targets, only: kinds}
	for _, to := range targets {
		for _, file := range []string{"bin/facet", "assets/lib/libonnxruntime.so"} {
			full := filepath.Join(b.work(to, "root", prefix), filepath.FromSlash(file))
			must.Do(t, os.MkdirAll(filepath.Dir(full), 0o755))
			must.Do(t, os.WriteFile(full, []byte(to.arch), 0o755))
		}
	}
	return b
}

// A base of a real registry, by a tag, gets pinned; the image is then made of that base, for each
// processor of its own, the same twice.
func TestImageStandsOnPinnedBase(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(registry.New())
	defer server.Close()
	tag := strings.TrimPrefix(server.URL, "http://") + "/distroless/cc:nonroot"
	bases := map[string]v1.Image{}
	index := mutate.IndexMediaType(empty.Index, types.DockerManifestList)
	for _, to := range targets {
		img, err := random.Image(1000, 2)
		must.Do(t, err)
		bases[to.arch] = img
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: to.arch}}})
	}
	ref, err := name.ParseReference(tag)
	if err == nil {
		err = remote.WriteIndex(ref, index)
	}
	must.Do(t, err)
	b := newTestBuilder(t)
	b.base = tag
	if _, err := b.image(t.Context()); err == nil || !strings.Contains(err.Error(), "must be pinned") {
		t.Errorf("a base without a digest: error is %v", err)
	}
	if b.base, err = pinned(t.Context(), tag); err != nil {
		t.Fatal(err)
	}
	var sums []string
	for range 2 {
		archive, err := b.image(t.Context())
		must.Do(t, err)
		sum, err := sumOf(archive)
		must.Do(t, err)
		sums = append(sums, sum)
		for _, to := range targets {
			root, config := imageRoot(t, archive, to.arch)
			got, err := os.ReadFile(filepath.Join(root, prefix, "bin", "facet"))
			if err != nil || string(got) != to.arch {
				t.Errorf("%s: the program is %q, %v", to.arch, got, err)
			}
			if c := config.Config; c.User != "65532:65532" || c.Labels["org.opencontainers.image.version"] != "1.2.3" || c.Labels["org.opencontainers.image.base.name"] != b.base {
				t.Errorf("%s: configuration %+v", to.arch, c)
			}
			layers, err := bases[to.arch].Layers()
			must.Do(t, err)
			want, err := layers[0].DiffID()
			if err != nil || config.RootFS.DiffIDs[0] != want {
				t.Errorf("%s: the first layer is not that of the processor's base (%v)", to.arch, err)
			}
		}
	}
	if sums[0] != sums[1] {
		t.Error("two images of the same files differ")
	}
}

// The real image: its root file system, read-only and not as root, runs a node that answers over TLS.
func TestImageRootServes(t *testing.T) {
	t.Parallel()
	archive := filepath.Join(dist(t), "facet-"+versionOf(t)+"-image.tar")
	needsContainers(t)
	root, config := imageRoot(t, archive, runtime.GOARCH)
	data := t.TempDir()
	port := freePorts(t)
	c := container{root: root, user: config.Config.User, env: config.Config.Env, binds: []bind{{from: data, place: "/var/lib/facet"}}}
	entry := config.Config.Entrypoint
	run := func(args ...string) string {
		t.Helper()
		out, err := c.command(t.Context(), t, append(entry, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("facet %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	if got := run("version"); !strings.HasPrefix(got, "facet "+versionOf(t)+" (") { // with the commit
		t.Errorf("facet version: got %q", got)
	}
	passphrase := filepath.Join(data, "passphrase")
	must.Do(t, os.WriteFile(passphrase, []byte("a long passphrase\n"), 0o600))
	run("cluster", "init", "--dir", "/var/lib/facet", "--address", "127.0.0.1", "--port", port, "--authority", "/var/lib/facet/authority",
		"--passphrase-file", "/var/lib/facet/passphrase")
	ctx, stop := context.WithCancel(t.Context())
	node := c.command(ctx, t, append(entry, config.Config.Cmd...)...)
	var log strings.Builder
	node.Stdout, node.Stderr = &log, &log
	must.Do(t, node.Start())
	defer func() {
		stop()
		_ = node.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	}()
	number := 0
	fmt.Sscan(port, &number)
	ready(t, fmt.Sprintf("https://127.0.0.1:%d/readyz", number+2))
	// It ends with 3, because one node is a warning.
	if status, err := c.command(t.Context(), t, append(entry, "status")...).CombinedOutput(); !strings.Contains(string(status), "founded") {
		t.Errorf("facet status: %v\n%s", err, status)
	}
}

// Without an emulator of the whole machine only the program's start is tried on another processor:
// the dynamic linker and the libraries of the image.
func TestImageOfOtherProcessorStarts(t *testing.T) {
	t.Parallel()
	archive := filepath.Join(dist(t), "facet-"+versionOf(t)+"-image.tar")
	emulator := filepath.Join(rootDir, toolsFolder, "qemu-aarch64")
	if runtime.GOARCH == "arm64" {
		t.Skip("this machine runs the arm64 image itself")
	}
	root, config := imageRoot(t, archive, "arm64")
	out, err := exec.Command(emulator, "-L", root, filepath.Join(root, config.Config.Entrypoint[0]), "version").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "linux/arm64") {
		t.Errorf("got %q, %v", out, err)
	}
}

func versionOf(t *testing.T) string {
	t.Helper()
	version, err := checkVersions(rootDir, false)
	must.Do(t, err)
	return version
}

// freePorts returns the first of four free ports.
func freePorts(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// insecure calls nodes by addresses that are not in their certificates.
var insecure = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}

// ready waits until a probe answers 200, for at most a minute.
func ready(t *testing.T, url string) {
	t.Helper()
	last := ""
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		answer, err := insecure.Get(url)
		if err != nil {
			last = err.Error()
			continue
		}
		body, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
		answer.Body.Close()
		if last = string(body); answer.StatusCode == http.StatusOK {
			return
		}
	}
	t.Fatalf("%s: %s", url, last)
}
