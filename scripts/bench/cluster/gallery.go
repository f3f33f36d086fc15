package cluster

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"facet/cmd/facet/dev"
	"facet/internal/id"
	"facet/node/wire"
	"facet/raftfsm/metafsm"
	"facet/scripts/bench/fill"
	"facet/scripts/bench/https"
)

const (
	galleryName = "bench"
	// noteFile is a file in the cluster's folder.
	noteFile = "bench.json"
	// spare is how many more events than wanted a gallery may have.
	spare = 1000
)

// Gallery describes a filled gallery, so that a later run can use its folder again.
type Gallery struct {
	APIKey  string      `json:"api_key"`
	Events  int         `json:"events"`
	Subject id.Subject  `json:"subject"`
	Event   id.Event    `json:"event"`
	Filled  fill.Filled `json:"filled"`
}

// Prepare creates the cluster in s.Dir and fills a gallery with this many events, one
// of them of the photo. If an earlier run has done that, it returns that run's gallery.
func (f Files) Prepare(ctx context.Context, s Shape, events int, photo []byte, spectrum []float64) (g Gallery, err error) {
	file := filepath.Join(s.Dir, noteFile)
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &g)
		if err == nil && g.Events != events {
			err = fmt.Errorf("the cluster in %s has %d templates: choose another -dir, or -events %d", s.Dir, g.Events, g.Events)
		}
		return g, err
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return g, err
	}
	g.Events = events
	i, err := f.found(ctx, s, &g, photo)
	if err != nil {
		return g, err
	}
	into := fill.Gallery{Name: galleryName, Subject: g.Subject, Event: g.Event, Spectrum: spectrum}
	for _, n := range i.Nodes {
		into.Nodes = append(into.Nodes, fill.Node{ID: n.ID, Dir: n.Dir})
	}
	if into.ClusterKey, err = find(s.Dir, "cluster.key"); err != nil {
		return g, err
	}
	if g.Filled, err = fill.Fill(ctx, into, events); err != nil {
		return g, err
	}
	if text, err = json.Marshal(g); err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	return g, err
}

// found creates the gallery and registers the photo.
func (f Files) found(ctx context.Context, s Shape, g *Gallery, photo []byte) (i dev.Info, err error) {
	c, err := f.Start(ctx, s)
	if err != nil {
		return i, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := allow(ctx, c, g.Events+spare); err != nil {
		return i, err
	}
	client, err := https.New(c.Info())
	if err == nil {
		err = client.Found(galleryName, g.Events+spare)
	}
	if err != nil {
		return i, err
	}
	g.APIKey = client.APIKey
	text, err := client.Post(client.URL, "/v1.1/subjects", map[string]any{"face": base64.StdEncoding.EncodeToString(photo)})
	if err != nil {
		return i, err
	}
	if g.Subject.UUID, err = idIn(text, "id"); err == nil {
		g.Event.UUID, err = idIn(text, "eventId")
	}
	return c.Info(), err
}

// allow lets each tenant have so many subjects.
func allow(ctx context.Context, c *Cluster, subjects int) error {
	tenants, err := c.Admin().Tenants(ctx)
	if err != nil {
		return err
	}
	for _, t := range tenants {
		if _, err := c.Admin().SetTenant(ctx, wire.SetTenant{Name: t.Name, Quotas: map[string]uint64{metafsm.QuotaSubjects.String(): uint64(subjects)}}); err != nil {
			return err
		}
	}
	return nil
}

// Check returns an error unless the answer to a search for the photo contains all
// subjects with the photo's face: the registered one, and the last of each shard.
func (g *Gallery) Check(answer []byte) error {
	want := []id.Subject{g.Subject}
	for _, part := range g.Filled.Shards {
		want = append(want, part.Planted)
	}
	for _, s := range want {
		if !bytes.Contains(answer, []byte(s.String())) {
			return fmt.Errorf("the search is answered without subject %s: %s", s, answer)
		}
	}
	return nil
}

// idIn returns the id of a field with this name in the answer to a registration.
func idIn(answer []byte, name string) (id.UUID, error) {
	m := regexp.MustCompile(`"` + name + `":\s*"([0-9a-f-]{36})"`).FindSubmatch(answer)
	if m == nil {
		return id.UUID{}, fmt.Errorf("the registration is answered by %s", answer)
	}
	return id.Parse(string(m[1]))
}

// find returns the path of the file with this name below dir.
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
