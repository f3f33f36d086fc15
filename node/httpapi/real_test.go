package httpapi_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"facet/engine"
	"facet/engine/enginetest"
	"facet/internal/id"
	"facet/internal/must"
	"facet/node"
	"facet/node/nodetest"
	"facet/raftfsm/metafsm"
	"facet/router"
)

// photos is the extractor of these tests: the face engine, which reads each image
// once. The texts "late", "fault", "panic" and "busy" stand for what no photo makes
// the engine do. A text that starts with "person " is an image of HashExtractor, for
// steps that need many faces and none in particular.
type photos struct {
	*engine.Engine
	people

	mu   sync.Mutex
	read map[string][]engine.Face
}

// Extract finds all faces (router.Extractor).
func (p *photos) Extract(ctx context.Context, image []byte) ([]engine.Face, error) {
	return p.once(ctx, "all", image, func() ([]engine.Face, error) { return p.Engine.Extract(ctx, image) })
}

// ExtractLarge finds the large faces (router.Extractor).
func (p *photos) ExtractLarge(ctx context.Context, image []byte, share float32) ([]engine.Face, error) {
	return p.once(ctx, fmt.Sprint("large ", share), image, func() ([]engine.Face, error) { return p.Engine.ExtractLarge(ctx, image, share) })
}

func (p *photos) once(ctx context.Context, how string, image []byte, run func() ([]engine.Face, error)) ([]engine.Face, error) {
	switch text := string(image); {
	case text == "late":
		return nil, context.DeadlineExceeded
	case text == "fault":
		return nil, errors.New("asked for")
	case text == "panic":
		panic("bug: asked for")
	case text == "busy":
		return nil, engine.ErrBusy
	case strings.HasPrefix(text, "person "):
		return p.person(ctx, text)
	}
	sum := sha256.Sum256(image)
	key := how + string(sum[:])
	p.mu.Lock()
	defer p.mu.Unlock()
	if faces, ok := p.read[key]; ok {
		return faces, nil
	}
	faces, err := run()
	if err == nil {
		p.read[key] = faces
	}
	return faces, err
}

// people is the extractor of tests that need no engine: all images are texts of persons.
type people struct{ nodetest.HashExtractor }

// Extract finds all faces (router.Extractor).
func (p people) Extract(ctx context.Context, image []byte) ([]engine.Face, error) {
	return p.person(ctx, string(image))
}

// ExtractLarge returns the same faces (router.Extractor).
func (p people) ExtractLarge(ctx context.Context, image []byte, _ float32) ([]engine.Face, error) {
	return p.Extract(ctx, image)
}

// person returns the face of a text like "person a quality=0.5". With a cosine, its
// template has this cosine to that of "person cosine=1". With a score and a side, the
// side as a share of the first, a second face follows.
func (p people) person(ctx context.Context, text string) ([]engine.Face, error) {
	found, err := p.HashExtractor.Extract(ctx, []byte(text))
	if err != nil {
		return nil, err
	}
	second := found[0]
	for word := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(word, "=")
		wide, _ := strconv.ParseFloat(value, 32)
		v := float32(wide)
		switch name {
		case "cosine":
			clear(found[0].Template)
			found[0].Template[0], found[0].Template[1] = v, float32(math.Sqrt(1-wide*wide))
		case "quality":
			found[0].Attributes.Quality = v
		case "score":
			second.Attributes.Score = v
		case "side":
			second.Attributes.Face.Right = second.Attributes.Face.Left + v*(second.Attributes.Face.Right-second.Attributes.Face.Left)
			found = append(found, second)
		}
	}
	return found, nil
}

// service is a running cluster with the face engine.
type service struct {
	*nodetest.Cluster
	bucket string // folder of the object store; empty without one
}

// start starts a cluster with the face engine.
func start(t *testing.T, o nodetest.Options) *service {
	t.Helper()
	e := enginetest.Shared(t)
	o.Extractor, o.Table = &photos{Engine: e, read: map[string][]engine.Face{}}, e.Table()
	return &service{nodetest.Start(t, o), strings.TrimPrefix(o.Bucket, "file://")}
}

// startFaces starts a node in a bubble.
func startFaces(t *testing.T) *service {
	t.Helper()
	return &service{Cluster: nodetest.Start(t, nodetest.Options{Nodes: 1, Extractor: people{}, Table: nodetest.Table()})}
}

// tenant is a tenant of a service with a client for each role, which send to one node.
type tenant struct {
	base                     string
	admin, biometric, reader *nodetest.Client
	adminKey, key            router.AccessKey // key is that of biometric
	files                    string           // folder of its files in the object store
}

func (s *service) tenant(t *testing.T, name string, n int) tenant {
	t.Helper()
	m := s.Nodes[n%len(s.Nodes)]
	admin, who := s.ClientOf(name)
	allow(t, m.Node, who, metafsm.QuotaValue{Quota: metafsm.QuotaSubjects, Most: metafsm.QuotaMax})
	key := func(role router.Role) router.AccessKey {
		k, err := m.Node.Router().CreateAccessKey(t.Context(), who, router.KeyTerms{Role: role})
		must.Do(t, err)
		return k
	}
	files := filepath.Join(s.bucket, who.String())
	adminKey, own := key(router.RoleAdmin), key(router.RoleBiometric)
	return tenant{m.URL, admin.Keyed(adminKey), admin.Keyed(own), admin.Keyed(key(router.RoleReadOnly)), adminKey, own, files}
}

// allow sets a quota of a tenant. A new cluster has none until its level was raised.
func allow(t *testing.T, n *node.Node, who id.Tenant, v metafsm.QuotaValue) {
	t.Helper()
	for late := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		_, err := n.Router().SetQuotas(t.Context(), who, []metafsm.QuotaValue{v})
		if err == nil {
			return
		}
		if router.KindOf(err) != router.Unavailable || time.Now().After(late) {
			t.Fatal(err)
		}
	}
}

// gallery creates a gallery and gives its API key to a client of the tenant.
func (n tenant) gallery(t *testing.T, name string, size int) *nodetest.Client {
	t.Helper()
	a := n.admin.Call(t, n.base, http.MethodPost, "/api/galleries", map[string]any{
		"name": name, "size": size, "faceMinimumQualityScore": 0.45,
	})
	var g struct{ APIKey string }
	if a.Decode(t, &g); a.Status != http.StatusOK {
		t.Fatalf("create gallery: %d %s", a.Status, a.Body)
	}
	c := *n.biometric
	c.APIKey = g.APIKey
	return &c
}

// put puts an image into the tenant's folder of the object store.
func (n tenant) put(t *testing.T, name string, image []byte) {
	t.Helper()
	must.Do(t, errors.Join(os.MkdirAll(n.files, 0o700), os.WriteFile(filepath.Join(n.files, name), image, 0o600)))
}

// sample returns the bytes of a sample photo.
func sample(t *testing.T, photo string) []byte {
	t.Helper()
	switch photo {
	case "behind.jpg":
		return enginetest.Behind(t)
	case "alike.jpg":
		return enginetest.Alike(t)
	}
	found, err := filepath.Glob(filepath.Join(enginetest.Assets(t), "photos", "*", photo))
	if err != nil || len(found) != 1 {
		t.Fatalf("there is no photo %s: %v", photo, err)
	}
	raw, err := os.ReadFile(found[0])
	must.Do(t, err)
	return raw
}

// encoded returns the base64 of a sample photo, or of text.
func encoded(t *testing.T, text string) string {
	t.Helper()
	if ext := filepath.Ext(text); ext == ".jpg" || ext == ".png" {
		return base64.StdEncoding.EncodeToString(sample(t, text))
	}
	return nodetest.Image(text)
}
