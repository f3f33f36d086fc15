// Package debug collects what helps to understand a cluster's trouble in one file: states, metrics,
// logs, settings and profiles of all nodes that it reaches. The file has no keys, no names of
// tenants, galleries or people, no images and no templates: nothing that holds them is read.
package debug

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"facet/cmd/facet/admin"
	"facet/cmd/facet/doctor"
	"facet/node/wire"
)

const (
	// fileBytesMax is the most bytes of one file.
	fileBytesMax = 16 << 20
	// profileTime is how long a profile takes that takes time.
	profileTime = 5 * time.Second
	// askTimeout bounds a request.
	askTimeout = 20 * time.Second
	// nodesAtOnce is the most nodes that are asked at once.
	nodesAtOnce = 16
)

// file is one file of the bundle.
type file struct {
	Name   string `json:"name"`
	What   string `json:"what"`
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"`

	content []byte
}

// Manifest lists the files of a bundle.
type Manifest struct {
	Version string    `json:"version"` // of the facet that made it
	Time    time.Time `json:"time"`
	Files   []file    `json:"files"`
	// Missing says what could not be read, and why.
	Missing []string `json:"missing"`
	Note    string   `json:"note"`
}

const note = "No keys, no names of tenants, galleries, tags or people, no images, no templates. Names and addresses of nodes are in it."

// bundle collects files.
type bundle struct {
	client *admin.Client

	mu sync.Mutex // guards m
	m  Manifest
}

// Collect asks all nodes that the configuration's client knows. It returns an error if none
// answers.
func Collect(ctx context.Context, cfg doctor.Config) (*Bundle, error) {
	b := &bundle{client: cfg.Client, m: Manifest{Version: wire.Version, Time: time.Now().UTC().Truncate(time.Second), Missing: []string{}, Note: note}}
	s, err := cfg.Client.Status(ctx)
	b.json("cluster/status.json", "nodes, groups, leaders, lag and warnings (facet status)", s, err)
	p, planErr := cfg.Client.Plan(ctx)
	b.json("cluster/plan.json", "moves to come (facet shard balance --plan)", p, planErr)
	if err != nil && planErr != nil {
		return nil, err
	}
	b.json("doctor.json", "checks of this machine and the cluster (facet doctor)", doctor.Examine(ctx, cfg), nil)
	var work sync.WaitGroup
	slots := make(chan struct{}, nodesAtOnce)
	for _, address := range cfg.Client.Addresses() {
		work.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			b.node(ctx, address)
		})
	}
	work.Wait()
	slices.SortFunc(b.m.Files, func(a, c file) int { return strings.Compare(a.Name, c.Name) })
	slices.Sort(b.m.Missing)
	return &Bundle{b.m}, ctx.Err()
}

// part is one thing to ask a node for.
type part struct{ name, path, what string }

// parts lists what each node is asked for, in order: a node takes one profile at a time.
func parts() []part {
	seconds := fmt.Sprintf("?seconds=%d", int(profileTime.Seconds()))
	return []part{
		{"ready.json", wire.PathReady, "whether the node serves, and why not"},
		{"metrics.txt", wire.PathMetrics, "metrics, in Prometheus' form"},
		{"log.txt", wire.PathLog, "the last lines of the log"},
		{"settings.json", wire.PathSettings, "settings without secrets"},
		{"goroutine.txt", wire.PathProfiles + "goroutine?debug=1", "what all goroutines do"},
		{"heap.pprof", wire.PathProfiles + "heap", "where the Go memory was allocated: sizes, no contents"},
		{"cpu.pprof", wire.PathProfiles + "profile" + seconds, "in which functions the processors were busy for 5 s"},
		{"mutex.pprof", wire.PathProfiles + "mutex" + seconds, "where goroutines waited for locks in 5 s"},
		{"block.pprof", wire.PathProfiles + "block" + seconds, "where goroutines waited in 5 s"},
	}
}

// node reads the parts of a node. After the first part that it does not answer at all it asks no
// more.
func (b *bundle) node(ctx context.Context, address string) {
	folder := "nodes/" + strings.NewReplacer(":", "-", "[", "", "]", "", "/", "-").Replace(address) + "/"
	for _, p := range parts() {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		content, err := b.client.Fetch(ctx, address, p.path, fileBytesMax)
		cancel()
		refused, answered := errors.AsType[*admin.AnswerError](err)
		if answered && p.path == wire.PathReady {
			content, err = []byte(refused.Error()+"\n"), nil // the answer of a node that does not serve
		}
		if !b.file(folder+p.name, p.what, content, err) && !answered {
			return
		}
	}
}

// json adds a value as a file.
func (b *bundle) json(name, what string, v any, err error) {
	var content []byte
	if err == nil {
		content, err = json.MarshalIndent(v, "", "  ")
	}
	b.file(name, what, content, err)
}

// file adds a file, or notes why it is missing. It reports whether it was added.
func (b *bundle) file(name, what string, content []byte, err error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		b.m.Missing = append(b.m.Missing, fmt.Sprintf("%s: %v", name, err))
		return false
	}
	if !strings.HasSuffix(name, ".pprof") {
		content = scrub(content)
	}
	sum := sha256.Sum256(content)
	b.m.Files = append(b.m.Files, file{name, what, len(content), hex.EncodeToString(sum[:]), content})
	return true
}

// accessKey matches the ids of access keys, which the log has when one is made or revoked.
var accessKey = regexp.MustCompile(`FACET[A-Za-z0-9]{15}`)

// scrub takes the ids of access keys out of a text.
func scrub(text []byte) []byte { return accessKey.ReplaceAll(text, []byte("FACET…")) }

// Bundle is the collection of all nodes' files.
type Bundle struct{ Manifest Manifest }

// WriteFile writes the bundle to a new file, a compressed tar archive that only its owner may
// read.
func (b *Bundle) WriteFile(name string) (err error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("make the bundle: %w", err)
	}
	if err = errors.Join(b.write(f), f.Close()); err != nil {
		return errors.Join(fmt.Errorf("write the bundle: %w", err), os.Remove(name))
	}
	return nil
}

// write writes the archive.
func (b *Bundle) write(w io.Writer) error {
	manifest, err := json.MarshalIndent(b.Manifest, "", "  ")
	if err != nil {
		return err
	}
	z := gzip.NewWriter(w)
	t := tar.NewWriter(z)
	for _, f := range append([]file{{Name: "manifest.json", content: manifest}}, b.Manifest.Files...) {
		head := tar.Header{Name: "facet-debug/" + f.Name, Mode: 0o600, Size: int64(len(f.content)), ModTime: b.Manifest.Time}
		if err := t.WriteHeader(&head); err != nil {
			return err
		}
		if _, err := io.Copy(t, bytes.NewReader(f.content)); err != nil {
			return err
		}
	}
	return errors.Join(t.Close(), z.Close())
}
