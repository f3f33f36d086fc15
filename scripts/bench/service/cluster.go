package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"facet/cmd/facet/config"
	"facet/cmd/facet/dev"
	"facet/engine"
	"facet/engine/models"
	"facet/internal/id"
	"facet/scripts/bench/fill"
	"facet/scripts/bench/https"
)

const (
	galleryName = "bench"
	searchPath  = "/v1.1/face/search"
	readyWait   = 5 * time.Minute
	readyPoll   = 100 * time.Millisecond
	// portraitShare is what the service asks the engine for (router.probe).
	portraitShare = .3
)

// bench is what the parts of a run share.
type bench struct {
	options
	engine *engine.Engine
	photo  []byte
	face   engine.Face // of the photo, as this machine's models see it
	kernel *kernelPart
	note   note
}

// note is what a later run has to know of a folder that it uses again.
type note struct {
	APIKey  string      `json:"api_key"`
	Events  int         `json:"events"`
	Subject id.Subject  `json:"subject"`
	Event   id.Event    `json:"event"`
	Filled  fill.Filled `json:"filled"`
}

func (b *bench) openEngine() error {
	pack, err := models.Open(filepath.Join(b.assets, "packs", "default"))
	if err != nil {
		return fmt.Errorf("%w: run make setup", err)
	}
	if b.engine, err = engine.New(pack, engine.Config{Library: b.library(), Workers: 1}); err != nil {
		return err
	}
	if b.photo, err = os.ReadFile(filepath.Join(b.assets, "photos", "face_recognition", "obama.jpg")); err != nil {
		return err
	}
	faces, err := b.engine.ExtractLarge(context.Background(), b.photo, portraitShare)
	if err == nil && len(faces) == 0 {
		err = errors.New("there is no face in the photo")
	}
	if err == nil {
		b.face = faces[0]
	}
	return err
}

func (b *bench) library() string { return filepath.Join(b.assets, "lib", "libonnxruntime.so") }

// start starts the nodes, which are this program, and waits until all serve.
func (b *bench) start(ctx context.Context) (*dev.Cluster, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return dev.Open(ctx, dev.Config{
		Dir: b.dir, Nodes: b.nodes, Shards: b.shards, Binary: self, Out: io.Discard,
		Assets: config.Assets{Models: absolute(filepath.Join(b.assets, "packs", "default")), ONNXRuntime: absolute(b.library())},
	})
}

func absolute(name string) string {
	if a, err := filepath.Abs(name); err == nil {
		return a
	}
	return name
}

// prepare founds the cluster and fills it, unless that was done before.
func (b *bench) prepare(ctx context.Context) error {
	file := filepath.Join(b.dir, "bench-service.json")
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &b.note)
		if err == nil && b.note.Events != b.events {
			err = fmt.Errorf("the cluster in %s has %d templates", b.dir, b.note.Events)
		}
		return err
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	g, err := b.found(ctx)
	if err != nil {
		return err
	}
	if g.ClusterKey, err = find(b.dir, "cluster.key"); err != nil {
		return err
	}
	if b.note.Filled, err = fill.Fill(ctx, g, b.events); err != nil {
		return err
	}
	b.note.Events = b.events
	if text, err = json.Marshal(b.note); err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	return err
}

// found makes a cluster with a gallery and registers the photo.
func (b *bench) found(ctx context.Context) (g fill.Gallery, err error) {
	c, err := b.start(ctx)
	if err != nil {
		return g, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	i := c.Info()
	client, err := https.New(i)
	if err != nil {
		return g, err
	}
	text, err := client.Post(i.BaseURLs[0], "/api/galleries", map[string]any{
		"name": galleryName, "description": "", "size": b.events + 1000, "faceMinimumQualityScore": .45,
	})
	var made struct{ APIKey string }
	if err == nil {
		err = json.Unmarshal(text, &made)
	}
	if err != nil {
		return g, err
	}
	b.note.APIKey, client.APIKey = made.APIKey, made.APIKey
	if text, err = client.Post(i.BaseURLs[0], "/v1.1/subjects", map[string]any{"face": base64.StdEncoding.EncodeToString(b.photo)}); err != nil {
		return g, err
	}
	if b.note.Subject.UUID, err = idIn(text, "id"); err == nil {
		b.note.Event.UUID, err = idIn(text, "eventId")
	}
	for _, n := range i.Nodes {
		g.Nodes = append(g.Nodes, fill.Node{ID: n.ID, Dir: n.Dir})
	}
	g.Name, g.Subject, g.Event, g.Spectrum = galleryName, b.note.Subject, b.note.Event, b.engine.Spectrum()
	return g, err
}

// idIn finds an id by its name in a registration's answer.
func idIn(answer []byte, name string) (id.UUID, error) {
	m := regexp.MustCompile(`"` + name + `":\s*"([0-9a-f-]{36})"`).FindSubmatch(answer)
	if m == nil {
		return id.UUID{}, fmt.Errorf("the registration is answered by %s", answer)
	}
	return id.Parse(string(m[1]))
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

// warm waits until every node's search finds the photo in each shard: until then
// templates are still decrypted.
func (b *bench) warm(ctx context.Context, client *https.Client, urls []string) error {
	o, err := newSearch(probeImage(b.face.Template))
	if err != nil {
		return err
	}
	want := []id.Subject{b.note.Subject}
	for _, p := range b.note.Filled.Shards {
		want = append(want, p.Planted)
	}
	for _, url := range slices.Concat(urls, urls, urls) { // each replica is asked in its turn
		for begin := time.Now(); ; time.Sleep(readyPoll) {
			text, err := client.Post(url, o.Target, json.RawMessage(o.Body))
			if err == nil {
				if err = all(text, want); err != nil {
					return err
				}
				break
			}
			if ctx.Err() != nil || time.Since(begin) > readyWait {
				return err
			}
		}
	}
	return nil
}

func all(answer []byte, want []id.Subject) error {
	for _, s := range want {
		if !bytes.Contains(answer, []byte(s.String())) {
			return fmt.Errorf("the search is answered without subject %s: %s", s, answer)
		}
	}
	return nil
}

// newSearch is a search for what an image shows.
func newSearch(image []byte) (https.Operation, error) {
	return https.NewOperation(searchPath, map[string]any{"probe": base64.StdEncoding.EncodeToString(image)})
}
