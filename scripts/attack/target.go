package main

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"facet/cmd/facet/dev"
	"facet/internal/id"
	"facet/internal/testkit"
	"facet/node/wire"
	"facet/scripts/bench/cluster"
)

const (
	nodes        = 3 // that serve; one more is removed before the attacks
	settleTime   = 90 * time.Second
	settlePause  = 200 * time.Millisecond
	galleryField = "faceMinimumQualityScore"
)

// Photos of two people, and another one of the first.
var (
	portraits = []string{"face_recognition/obama.jpg", "face_recognition/biden.jpg"}
	another   = "face_recognition/obama2.jpg"
)

// target is the cluster under attack, with two tenants. The victim has people enrolled,
// the thief has keys of its own.
type target struct {
	*cluster.Cluster
	files  cluster.Files
	info   dev.Info // of all four nodes
	hosts  []string // of the public ports of the nodes that serve
	roots  *x509.CertPool
	photos map[string][]byte // by name

	victim, thief *tenant
}

// tenant is a tenant with its keys, and what it has stored.
type tenant struct {
	name                   string
	id                     id.Tenant
	admin, biometric, only credentials // only: read-only
	gallery, second        gallery     // second is another gallery of the tenant
	sibling                application // in the first gallery
	tag                    string
	subjects               []subject
	batch                  string // id of a bulk registration
}

type gallery struct{ id, name, apiKey string }

type application struct{ id, apiKey string }

type subject struct{ ID, EventID string }

// begin founds the cluster, makes both tenants, enrols people and removes a node.
func begin(ctx context.Context, files cluster.Files, dir string) (t *target, err error) {
	c, err := files.Start(ctx, cluster.Shape{Dir: dir, Nodes: nodes + 1})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	t = &target{Cluster: c, files: files, info: c.Info(), photos: map[string][]byte{}}
	if t.roots, err = testkit.Roots(t.info.CAFile); err != nil {
		return nil, err
	}
	for _, n := range t.info.Nodes[:nodes] {
		t.hosts = append(t.hosts, strings.TrimPrefix(n.URL, "https://"))
	}
	for _, name := range append(portraits, another) {
		if t.photos[name], err = os.ReadFile(filepath.Join(files.Assets, "photos", filepath.FromSlash(name))); err != nil {
			return nil, err
		}
	}
	if t.victim, err = t.found(ctx, "victim"); err != nil {
		return nil, err
	}
	if t.thief, err = t.found(ctx, "thief"); err != nil {
		return nil, err
	}
	for i, name := range portraits {
		var s subject
		if err = t.must(i, t.victim.biometric, http.MethodPost, "/v1.1/subjects", t.victim.gallery.apiKey, map[string]any{
			"face": encoded(t.photos[name]), "tags": []string{t.victim.tag},
		}, &s); err != nil {
			return nil, err
		}
		t.victim.subjects = append(t.victim.subjects, s)
	}
	return t, t.remove(ctx, t.info.Nodes[nodes].ID)
}

// remove drains a node and removes it.
func (t *target) remove(ctx context.Context, who id.Node) error {
	if err := t.Admin().OrderNode(ctx, wire.Order{Node: who, State: wire.StateDraining}); err != nil {
		return fmt.Errorf("drain a node: %w", err)
	}
	for late := time.Now().Add(settleTime); ; time.Sleep(settlePause) {
		err := t.Admin().OrderNode(ctx, wire.Order{Node: who, State: wire.StateRemoved})
		if err == nil {
			return nil
		}
		if time.Now().After(late) || ctx.Err() != nil {
			return fmt.Errorf("remove a node: %w", err)
		}
	}
}

// found makes a tenant with a key of each role, two galleries and a tag.
func (t *target) found(ctx context.Context, name string) (*tenant, error) {
	n := &tenant{name: "canary-tenant-" + name, tag: "canary-tag-" + name}
	made, err := t.Admin().CreateTenant(ctx, n.name)
	if err != nil {
		return nil, err
	}
	n.id, n.admin = made.Tenant, credentialsOf(made.AccessKey, made.SecretKey)
	for role, into := range map[string]*credentials{"biometric": &n.biometric, "read-only": &n.only} {
		pair, err := t.Admin().NewKey(ctx, wire.NewKey{Tenant: n.name, Role: role})
		if err != nil {
			return nil, err
		}
		*into = credentialsOf(pair.AccessKey, pair.SecretKey)
	}
	for i, g := range []*gallery{&n.gallery, &n.second} {
		g.name = fmt.Sprintf("canary-gallery-%s-%d", name, i)
		var got struct{ ID, APIKey string }
		err := t.must(0, n.admin, http.MethodPost, "/api/galleries", "", map[string]any{"name": g.name, "description": "", galleryField: .45, "size": 1000}, &got)
		if err != nil {
			return nil, err
		}
		g.id, g.apiKey = got.ID, got.APIKey
	}
	var sibling struct{ ID, APIKey string }
	err = t.must(0, n.admin, http.MethodPost, "/api/applications", "", map[string]any{
		"name": "canary-application-" + name, "description": "", "galleryId": n.gallery.id, galleryField: .45,
	}, &sibling)
	if err != nil {
		return nil, err
	}
	n.sibling = application{sibling.ID, sibling.APIKey}
	if err := t.must(0, n.biometric, http.MethodPost, "/v1.1/tags/"+n.tag, n.gallery.apiKey, nil, nil); err != nil {
		return nil, err
	}
	return n, t.bulk(n)
}

// bulk registers a file that does not exist: the job stays, with its file's name.
func (t *target) bulk(n *tenant) error {
	var job struct{ BatchID string }
	err := t.must(0, n.biometric, http.MethodPost, "/v1.1/jobs/bulkregister", n.gallery.apiKey, map[string]any{
		"registrations": []any{map[string]any{"filename": "canary-file-" + n.name + ".jpg"}},
	}, &job)
	n.batch = job.BatchID
	return err
}

// must sends a request of an honest client, which has to succeed.
func (t *target) must(node int, who credentials, method, target, key string, body, out any) error {
	who.APIKey = key
	a, err := t.send(node, address{0, 1}, t.sign(node, who, method, target, body))
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, target, err)
	}
	if a.status/100 != 2 {
		return fmt.Errorf("%s %s: %s", method, target, a)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal([]byte(a.body), out); err != nil {
		return fmt.Errorf("%s %s: %s: %w", method, target, a, err)
	}
	return nil
}

// serves returns an error unless all nodes run as they did at the start, and find each
// enrolled person on another photo.
func (t *target) serves(ctx context.Context) error {
	var status wire.Status
	for late := time.Now().Add(settleTime); ; time.Sleep(settlePause) {
		var err error
		if status, err = t.Admin().Status(ctx); err == nil && settled(status) {
			break
		}
		if time.Now().After(late) || ctx.Err() != nil {
			return fmt.Errorf("the cluster does not settle: %v, %w", status.Warnings, err)
		}
	}
	now := t.Info().Nodes
	for i, n := range t.info.Nodes[:nodes] {
		if now[i].PID != n.PID || !runs(n.PID) {
			return fmt.Errorf("node %s ran as process %d, which has ended: see %s", n.Name, n.PID, n.Log)
		}
		var found struct{ Candidates []struct{ ID string } }
		v := t.victim
		if err := t.must(i, v.only, http.MethodPost, "/v1.1/face/search", v.gallery.apiKey, map[string]any{"probe": encoded(t.photos[another])}, &found); err != nil {
			return err
		}
		if len(found.Candidates) != 1 || found.Candidates[0].ID != v.subjects[0].ID {
			return fmt.Errorf("node %s: the search found %v, want %s alone", n.Name, found.Candidates, v.subjects[0].ID)
		}
		for j, name := range portraits {
			if err := t.must(i, v.only, http.MethodPost, "/v1.1/face/verify", v.gallery.apiKey, map[string]any{
				"id": v.subjects[j].ID, "probe": encoded(t.photos[name]),
			}, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// settled reports whether the nodes that serve answer and all their groups have leaders.
func settled(s wire.Status) bool {
	n := 0
	for _, m := range s.Nodes {
		if m.State == wire.StateRemoved {
			continue
		}
		if n++; !m.Answers || len(m.Groups) == 0 {
			return false
		}
		for _, g := range m.Groups {
			if g.Leader.IsZero() {
				return false
			}
		}
	}
	return n == nodes
}

// runs reports whether a process exists.
func runs(pid int) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	return err == nil
}

// pids returns the processes of the nodes that serve.
func (t *target) pids() (list []int) {
	for _, n := range t.info.Nodes[:nodes] {
		list = append(list, n.PID)
	}
	return list
}

// encoded returns bytes as base64.
func encoded(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
