//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"facet/cmd/facet/dev"
	"facet/engine/models"
	"facet/internal/id"
	"facet/node/sigv4"
	"facet/scripts/bench/fill"
)

const (
	startTimeout = 5 * time.Minute
	stopTimeout  = time.Minute
	poll         = 20 * time.Millisecond
	answerMax    = 1 << 20
	galleryName  = "bench"
	// limitMax is how many candidates a search may ask for: one of each shard has to fit.
	limitMax = 50
)

// bench is a cluster of one node.
type bench struct {
	options
	photo    []byte
	segments []string // files
	bytes    int64    // of them
	note     note
}

// note is what a later run has to know of a folder that it uses again.
type note struct {
	APIKey  string       `json:"api_key"`
	Events  int          `json:"events"`
	Planted []id.Subject `json:"planted"`
}

// program is the program while it runs.
type program struct {
	cmd   *exec.Cmd
	info  dev.Info
	since time.Time
}

// start starts the program, and waits until it is ready. pinned puts it on one core.
func (b *bench) start(ctx context.Context, pinned bool) (*program, error) {
	p := &program{cmd: exec.Command(b.facet, "dev", "--nodes", "1", "--dir", b.dir,
		"--models", filepath.Join(b.assets, "packs", "default"), "--onnxruntime", filepath.Join(b.assets, "lib", "libonnxruntime.so"))}
	p.cmd.Stderr = os.Stderr
	if pinned {
		p.cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	}
	if err := startOn(p.cmd, pinned); err != nil {
		return nil, fmt.Errorf("start %s: %w", b.facet, err)
	}
	p.since = time.Now()
	late, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		var err error
		if p.info, err = dev.ReadInfo(b.dir); err == nil {
			return p, nil
		}
		select {
		case <-late.Done():
			return nil, errors.Join(fmt.Errorf("wait for the node: %w", err), p.stop())
		case <-time.After(poll):
		}
	}
}

// startOn starts a program; pinned keeps it, and what it starts, on the last core.
func startOn(cmd *exec.Cmd, pinned bool) error {
	if !pinned {
		return cmd.Start()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return fmt.Errorf("read the cores: %w", err)
	}
	for core := range len(all) * strconv.IntSize {
		if all.IsSet(core) {
			one.Zero()
			one.Set(core)
		}
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return fmt.Errorf("stay on a core: %w", err)
	}
	return errors.Join(cmd.Start(), unix.SchedSetaffinity(0, &all))
}

func (p *program) stop() error {
	err := p.cmd.Process.Signal(os.Interrupt)
	kill := time.AfterFunc(stopTimeout, func() { _ = p.cmd.Process.Kill() }) // its Wait tells
	defer kill.Stop()
	return errors.Join(err, p.cmd.Wait())
}

// prepare founds the cluster and fills it, unless that was done before.
func (b *bench) prepare(ctx context.Context) error {
	file := filepath.Join(b.dir, "bench-restart.json")
	text, err := os.ReadFile(file)
	if err == nil {
		if err := json.Unmarshal(text, &b.note); err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		b.events = b.note.Events
		return b.findSegments()
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := b.fill(ctx); err != nil {
		return err
	}
	if text, err = json.Marshal(b.note); err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	return errors.Join(err, b.findSegments())
}

// fill makes a gallery, enrols the probe, and puts templates beside it.
func (b *bench) fill(ctx context.Context) error {
	p, err := b.start(ctx, false)
	if err != nil {
		return err
	}
	enrolled, err := b.found(p)
	if err = errors.Join(err, p.stop()); err != nil {
		return err
	}
	key, err := find(b.dir, "cluster.key")
	if err != nil {
		return err
	}
	pack, err := models.Read(filepath.Join(b.assets, "packs", "default"))
	if err != nil {
		return err
	}
	n := p.info.Nodes[0]
	begin := time.Now()
	filled, err := fill.Fill(ctx, fill.Gallery{
		Nodes: []fill.Node{{ID: n.ID, Dir: n.Dir}}, ClusterKey: key, Name: galleryName,
		Subject: enrolled.subject, Event: enrolled.event, Spectrum: pack.Manifest.Spectrum(),
	}, b.events)
	if err != nil {
		return err
	}
	b.note.Events, b.note.Planted = b.events, []id.Subject{enrolled.subject}
	for _, part := range filled.Shards {
		b.note.Planted = append(b.note.Planted, part.Planted)
	}
	fmt.Fprintf(b.out, "%d templates in %d shards, through their groups' logs: %.0f s\n", b.events, len(filled.Shards), time.Since(begin).Seconds())
	return nil
}

// enrolment is the probe's own.
type enrolment struct {
	subject id.Subject
	event   id.Event
}

func (b *bench) found(p *program) (e enrolment, err error) {
	c, err := newClient(p.info)
	if err != nil {
		return e, err
	}
	text, err := c.post("/api/galleries", "", map[string]any{
		"name": galleryName, "description": "", "size": b.events + 1000, "faceMinimumQualityScore": .45,
	})
	var gallery struct{ APIKey string }
	if err == nil {
		err = json.Unmarshal(text, &gallery)
	}
	if err != nil {
		return e, err
	}
	b.note.APIKey = gallery.APIKey
	text, err = c.post("/v1.1/subjects", b.note.APIKey, map[string]any{"face": base64.StdEncoding.EncodeToString(b.photo)})
	if err != nil {
		return e, err
	}
	ids := regexp.MustCompile(`"(id|eventId)":\s*"([0-9a-f-]{36})"`).FindAllStringSubmatch(string(text), -1)
	for _, m := range ids {
		u, err := id.Parse(m[2])
		if err != nil {
			return e, err
		}
		if m[1] == "id" {
			e.subject.UUID = u
		} else {
			e.event.UUID = u
		}
	}
	if e.subject.IsZero() || e.event.IsZero() {
		return e, fmt.Errorf("the registration is answered by %s", text)
	}
	return e, nil
}

// findSegments lists the files that a restart reads.
func (b *bench) findSegments() error {
	return filepath.WalkDir(b.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".seg" {
			return err
		}
		info, err := d.Info()
		if err == nil {
			b.segments, b.bytes = append(b.segments, path), b.bytes+info.Size()
		}
		return err
	})
}

func find(dir, name string) (path string, err error) {
	err = filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == name {
			path = at
		}
		return err
	})
	if err == nil && path == "" {
		err = fmt.Errorf("there is no %s in %s", name, dir)
	}
	return path, err
}

// restarted is what one restart took.
type restarted struct {
	ready, searched time.Duration
	resident        float64 // bytes
}

// restart starts the node on a core and searches until it is answered by all templates.
func (b *bench) restart(ctx context.Context) (r restarted, err error) {
	p, err := b.start(ctx, true)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	r.ready = time.Since(p.since)
	c, err := newClient(p.info)
	if err != nil {
		return r, err
	}
	for {
		text, err := c.post("/v1.1/face/search", b.note.APIKey, map[string]any{"probe": base64.StdEncoding.EncodeToString(b.photo), "limit": limitMax})
		if err == nil {
			r.searched = time.Since(p.since)
			if err := b.whole(text); err != nil {
				return r, err
			}
			break
		}
		if !errors.Is(err, errRefused) || time.Since(p.since) > startTimeout {
			return r, err
		}
	}
	r.resident, err = memory(p.info.Nodes[0].PID)
	return r, err
}

// whole refuses an answer without one of those that have the probe's face: the last of
// each shard, and the one that was enrolled.
func (b *bench) whole(answer []byte) error {
	for _, s := range b.note.Planted {
		if !bytes.Contains(answer, []byte(s.String())) {
			return fmt.Errorf("the search was answered without subject %s", s)
		}
	}
	return nil
}

// memory gives what a process has in memory, in bytes.
func memory(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		return 0, err
	}
	return float64(pages) * float64(os.Getpagesize()), nil
}

// client makes requests as a tenant's program does.
type client struct {
	signer sigv4.Signer
	http   http.Client
	url    string
	number int
}

func newClient(i dev.Info) (*client, error) {
	pem, err := os.ReadFile(i.CAFile)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, errors.New("the authority's certificate can't be read")
	}
	c := &client{
		signer: sigv4.Signer{Region: i.Region, Service: i.Service, AccessKey: i.AccessKey, SecretKey: i.SecretKey},
		url:    i.BaseURLs[0], http: http.Client{Timeout: startTimeout},
	}
	c.http.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}}
	return c, nil
}

// errRefused is an answer that is no 2xx.
var errRefused = errors.New("refused")

func (c *client) post(path, apiKey string, body any) ([]byte, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	c.number++
	headers := []sigv4.Header{
		{Name: "host", Value: strings.TrimPrefix(c.url, "https://")},
		{Name: "content-type", Value: "application/json"},
		{Name: "idempotency-key", Value: fmt.Sprintf("bench-%d-%d", time.Now().UnixNano(), c.number)},
	}
	if apiKey != "" {
		headers = append(headers, sigv4.Header{Name: "x-api-key", Value: apiKey})
	}
	more, err := c.signer.Sign(sigv4.Request{Method: http.MethodPost, Target: path, Headers: headers}, sha256.Sum256(text), time.Now())
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequest(http.MethodPost, c.url+path, bytes.NewReader(text)) //nolint:noctx // the client has a timeout
	if err != nil {
		return nil, err
	}
	for _, h := range append(headers[1:], more...) {
		r.Header.Set(h.Name, h.Value)
	}
	a, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer a.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(a.Body, answerMax))
	if err == nil && a.StatusCode/100 != 2 {
		err = fmt.Errorf("%s: %w: %d %s", path, errRefused, a.StatusCode, answer)
	}
	return answer, err
}
