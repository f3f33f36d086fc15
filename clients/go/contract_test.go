package client_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"facet.internal/client"
)

// openapi is the description of the interface, read by TestMain.
var openapi []byte

// described is the part of the description that these tests use.
type described struct {
	Paths      map[string]map[string]describedOperation
	Components struct {
		Schemas  map[string]describedSchema
		Examples map[string]struct{ Value any }
	}
}

type describedOperation struct {
	OperationID string
	Security    []map[string][]string
	Parameters  []reference
	RequestBody *struct{ Content describedContent }
	Responses   map[string]struct{ Content describedContent }
}

type describedContent map[string]struct {
	Schema struct {
		reference
		OneOf []reference
	}
	Example  any
	Examples map[string]struct {
		Ref   string `json:"$ref"`
		Value any
	}
}

type reference struct {
	Ref string `json:"$ref"`
}

// name is the last part of a reference.
func (r reference) name() string { return r.Ref[strings.LastIndex(r.Ref, "/")+1:] }

type describedSchema struct {
	Required   []string
	Properties map[string]any
	OneOf      []reference
}

// contract is a server that answers each request with the example of the
// description, and reports requests that differ from their description.
type contract struct {
	described
	t *testing.T

	mu     sync.Mutex
	called map[string]bool // operation ids
	last   describedOperation
}

func (s *contract) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	op, ok := s.find(r)
	if !ok {
		s.t.Errorf("%s %s is not described", r.Method, r.URL.EscapedPath())
		w.WriteHeader(http.StatusNotFound)
		return
	}
	s.called[op.OperationID], s.last = true, op
	keyed := slices.Contains(op.Parameters, reference{"#/components/parameters/IdempotencyKey"})
	if has := r.Header.Get("Idempotency-Key") != ""; has != keyed {
		s.t.Errorf("%s: Idempotency-Key is sent: %v, described: %v", op.OperationID, has, keyed)
	}
	_, needsKey := op.Security[0]["apiKey"]
	if needsKey && r.Header.Get("X-Api-Key") == "" || r.Header.Get("X-Cloud-Date") == "" || !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ") {
		s.t.Errorf("%s: headers %v", op.OperationID, r.Header)
	}
	s.checkBody(op, r)
	status, text := s.success(op)
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

func (s *contract) find(r *http.Request) (op describedOperation, ok bool) {
	path := strings.Split(r.URL.EscapedPath(), "/")
	for pattern, item := range s.Paths {
		fits := slices.EqualFunc(strings.Split(pattern, "/"), path, func(p, got string) bool {
			return p == got || strings.HasPrefix(p, "{") && got != ""
		})
		if found, has := item[strings.ToLower(r.Method)]; fits && has {
			return found, true
		}
	}
	return op, false
}

// checkBody checks that a body has the required members and no unknown ones.
func (s *contract) checkBody(op describedOperation, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err != nil || (len(text) > 0) != (op.RequestBody != nil) {
		s.t.Errorf("%s: body %q, %v", op.OperationID, text, err)
	}
	if op.RequestBody == nil {
		return
	}
	var members map[string]any
	if err := json.Unmarshal(text, &members); err != nil || r.Header.Get("Content-Type") != "application/json" {
		s.t.Errorf("%s: body %s: %v", op.OperationID, text, err)
	}
	described := op.RequestBody.Content["application/json"].Schema
	schema := s.Components.Schemas[described.name()]
	for _, one := range append(described.OneOf, schema.OneOf...) {
		alternative := s.Components.Schemas[one.name()]
		if !slices.ContainsFunc(alternative.Required, func(m string) bool { return members[m] == nil }) {
			schema = alternative
		}
	}
	needed := schema.Required
	if of := described.name(); strings.HasPrefix(of, "Gallery") || strings.HasPrefix(of, "Application") { // each setting can be sent
		needed = slices.Collect(maps.Keys(schema.Properties))
	}
	for _, m := range needed {
		if members[m] == nil {
			s.t.Errorf("%s: body has no %s", op.OperationID, m)
		}
	}
	for m := range members {
		if schema.Properties[m] == nil {
			s.t.Errorf("%s: body has %s, which is not described", op.OperationID, m)
		}
	}
}

// success returns the described status and example of success.
func (s *contract) success(op describedOperation) (status int, text []byte) {
	for code, r := range op.Responses {
		if code[0] != '2' {
			continue
		}
		if _, err := fmt.Sscan(code, &status); err != nil {
			s.t.Error(err)
		}
		if m, ok := r.Content["application/json"]; ok {
			value := m.Example
			for _, e := range m.Examples {
				value = e.Value
				if e.Ref != "" {
					value = s.Components.Examples[reference{e.Ref}.name()].Value
				}
			}
			text, _ = json.Marshal(value)
		}
	}
	return status, text
}

// within reports whether got contains everything in example.
func within(example, got any) bool {
	switch e := example.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		for name, v := range e {
			ok = ok && within(v, g[name])
		}
		return ok
	case []any:
		g, ok := got.([]any)
		return ok && slices.EqualFunc(e, g, within)
	case string:
		g, _ := got.(string)
		at, err := time.Parse(time.RFC3339, e)
		if same, err2 := time.Parse(time.RFC3339, g); err == nil && err2 == nil {
			return at.Equal(same)
		}
		return e == g
	}
	return reflect.DeepEqual(example, got)
}

// newContract returns a contract and a client of it.
func newContract(t *testing.T) (*contract, *client.Client) {
	t.Helper()
	s := &contract{t: t, called: map[string]bool{}}
	if err := json.Unmarshal(openapi, &s.described); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(s)
	t.Cleanup(server.Close)
	return s, testClient(t, client.Config{APIKey: "key"}, server)
}

// testClient returns a client of servers in this process.
func testClient(t *testing.T, cfg client.Config, servers ...*httptest.Server) *client.Client {
	t.Helper()
	cfg.AccessKey, cfg.SecretKey = "AK", "SK"
	for _, s := range servers {
		cfg.BaseURLs = append(cfg.BaseURLs, s.URL)
		cfg.TLS = s.Client().Transport.(*http.Transport).TLSClientConfig
	}
	c, err := client.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// testClientRoots returns a TLS configuration that trusts the authority in a file.
func testClientRoots(t *testing.T, file string) *http.Transport {
	t.Helper()
	pem, err := os.ReadFile(file)
	roots := x509.NewCertPool()
	if err != nil || !roots.AppendCertsFromPEM(pem) {
		t.Fatalf("read %s: %v", file, err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// calls contains every operation of the client. Each returns its result in the form
// of the example.
func calls(ctx context.Context, c *client.Client) []func() (any, error) {
	type object = map[string]any
	photo, image := client.Photo{
		Image: []byte("photo"), Tags: []string{"night shift"}, ExternalID: new("staff/4711"), UserData: json.RawMessage(`{"shift":2}`),
		Expires: time.Date(2199, 1, 31, 12, 0, 0, 5e8, time.UTC),
	}, []byte("photo")
	const s, e = "019a9c1e-3b52-7c41-9d0e-5f6a7b8c9d0e", "019a9c1e-3b52-7c42-8a1b-2c3d4e5f6071"
	none := func(err error) (any, error) { return nil, err }
	faces := func(list []client.Attributes, err error) (any, error) {
		all := []object{}
		for _, a := range list {
			all = append(all, object{"attributes": a})
		}
		return object{"faces": all}, err
	}
	score := func(n int, err error) (any, error) { return object{"id": s, "score": n}, err }
	query := client.SearchQuery{Probe: image, Threshold: new(0), Limit: 3, Tags: []string{"night shift"}}
	page := client.Page{Start: 1, Length: 2, Order: client.Descending}
	v1 := c.V1()
	return append([]func() (any, error){
		func() (any, error) { return object{"status": "OK"}, c.Health(ctx) },
		func() (any, error) { return client.WhoamiOf(ctx, c) },
		func() (any, error) { return c.Subjects(ctx, page) },
		func() (any, error) { return c.SubjectsWith(ctx, "staff/4711") },
		func() (any, error) { return c.Expiring(ctx, photo.Expires, client.Page{Length: 2, After: "c"}) },
		func() (any, error) { return c.Register(ctx, photo) },
		func() (any, error) { return c.Update(ctx, s, photo) },
		func() (any, error) { return none(c.Unregister(ctx, s)) },
		func() (any, error) {
			ids, err := c.Events(ctx, s)
			return object{"id": s, "events": []object{{"id": strings.Join(ids, ",")}}}, err
		},
		func() (any, error) { return c.Subject(ctx, s) },
		func() (any, error) { return c.RegisterEvent(ctx, s, photo) },
		func() (any, error) { return c.UpdateEvent(ctx, s, e, photo) },
		func() (any, error) { return none(c.UnregisterEvent(ctx, s, e)) },
		func() (any, error) { return c.Merge(ctx, s, e) },
		func() (any, error) { return faces(c.Extract(ctx, image, 5)) },
		func() (any, error) { return score(c.VerifySubject(ctx, s, image)) },
		func() (any, error) { return c.Verify(ctx, client.External("staff/4711"), image) },
		func() (any, error) { return client.CasesOf(c).Verify(ctx, s, image, "visits/12") },
		func() (any, error) { return score(c.VerifyFaces(ctx, image, image)) },
		func() (any, error) { return c.VerifyProbes(ctx, s, [][]byte{image, image}) },
		func() (any, error) { return c.VerifyFaceProbes(ctx, image, [][]byte{image, image}) },
		func() (any, error) { return c.Search(ctx, query) },
		func() (any, error) { return c.Search(ctx, client.SearchQuery{Probes: [][]byte{image, image}}) },
		func() (any, error) {
			return c.MatchPage(ctx, client.MatchQuery{Probe: image, Threshold: new(0), Length: 3, After: "AQ"})
		},
		func() (any, error) {
			return c.Compare(ctx, []client.CompareFace{{Face: image}, {Face: image}, {Token: "AQ"}})
		},
		func() (any, error) { return c.BeginCheck(ctx) },
		func() (any, error) { return c.CheckRow(ctx, s, 17, photo) },
		func() (any, error) { return none(c.EndCheck(ctx, s)) },
		func() (any, error) { return c.Tags(ctx) },
		func() (any, error) { return none(c.CreateTag(ctx, "a/b ü%")) },
		func() (any, error) { return none(c.RenameTag(ctx, "a/b ü%", "c")) },
		func() (any, error) { return none(c.DeleteTag(ctx, "c")) },
		func() (any, error) {
			id, err := c.BulkRegister(ctx, []client.BulkItem{{Filename: "f", Tags: []string{"t"}, Expires: photo.Expires}})
			return object{"batchId": id}, err
		},
		func() (any, error) { list, err := c.Jobs(ctx); return object{"jobs": list}, err },
		func() (any, error) { return c.BulkProgress(ctx, s, "") },
		func() (any, error) {
			id, err := c.BeginDuplicates(ctx, new(9000))
			return object{"batchId": id}, err
		},
		func() (any, error) { return c.Duplicates(ctx, "AQ", 7) },
		func() (any, error) { return none(c.EndDuplicates(ctx)) },
		func() (any, error) { return none(c.Different().Set(ctx, s, "externalId:staff/4711")) },
		func() (any, error) { return none(c.Different().Unset(ctx, s, "b")) },
		func() (any, error) {
			pairs := []client.DifferentPair{}
			for p, err := range c.Different().All(ctx) {
				if err != nil {
					return nil, err
				}
				pairs = append(pairs, p)
			}
			return object{"total": len(pairs), "pairs": pairs}, nil
		},
		func() (any, error) {
			return client.CasesOf(c).Page(ctx, client.CaseQuery{State: "open", Length: 7, After: "AQ"})
		},
		func() (any, error) { return client.CasesOf(c).Find(ctx, s) },
		func() (any, error) { return client.CasesOf(c).Decide(ctx, s, client.CaseSame) },
		func() (any, error) { return c.BulkProgress(ctx, s, "AAAD6A") },
		func() (any, error) { return v1.Register(ctx, image) },
		func() (any, error) { return v1.Update(ctx, s, image) },
		func() (any, error) { return none(v1.Unregister(ctx, s)) },
		func() (any, error) { return faces(v1.Extract(ctx, image)) },
		func() (any, error) { return score(v1.Verify(ctx, s, image)) },
		func() (any, error) { return v1.Search(ctx, query) },
		func() (any, error) { g, err := c.Galleries(ctx); return object{"galleries": g}, err },
		func() (any, error) { return c.Gallery(ctx, "g") },
		func() (any, error) {
			return c.CreateGallery(ctx, filled[client.NewGallery]("GalleryCreate"))
		},
		func() (any, error) {
			return c.UpdateGallery(ctx, "g", filled[client.GalleryChange]("GalleryCreate"))
		},
		func() (any, error) { return none(c.DeleteGallery(ctx, "g")) },
		func() (any, error) { a, err := c.Applications(ctx); return object{"applications": a}, err },
		func() (any, error) { return c.Application(ctx, "a") },
		func() (any, error) {
			return c.CreateApplication(ctx, filled[client.NewApplication]("ApplicationCreate"))
		},
		func() (any, error) {
			return c.UpdateApplication(ctx, "a", filled[client.ApplicationChange]("ApplicationCreate"))
		},
		func() (any, error) { return none(c.DeleteApplication(ctx, "a")) },
	}, auditCalls(ctx, c)...)
}

// filled returns a T with the examples of the settings in a schema.
func filled[T any](schema string) (t T) {
	var document described
	examples := map[string]any{"galleryId": "g"}
	err := json.Unmarshal(openapi, &document)
	for name, property := range document.Components.Schemas[schema].Properties {
		if list, ok := property.(map[string]any)["examples"].([]any); ok {
			examples[name] = list[0]
		}
	}
	text, wrong := json.Marshal(examples)
	if err = errors.Join(err, wrong, json.Unmarshal(text, &t)); err != nil {
		panic(err)
	}
	return t
}

// auditCalls contains the operations on the audit log.
func auditCalls(ctx context.Context, c *client.Client) []func() (any, error) {
	return []func() (any, error){
		func() (any, error) { return c.AuditRecords(ctx, client.AuditQuery{Operation: "search", Length: 7}) },
		func() (any, error) { _, err := c.AuditFile(ctx, "key"); return nil, err },
		func() (any, error) { _, err := c.AuditFile(ctx, "checkpoint"); return nil, err },
		func() (any, error) { _, err := c.AuditFile(ctx, "tile/000"); return nil, err },
	}
}

func TestOperationsMatchTheDocument(t *testing.T) {
	t.Parallel()
	s, c := newContract(t)
	for _, f := range calls(t.Context(), c) {
		got, err := f()
		id := s.last.OperationID
		if err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		_, text := s.success(s.last)
		if text == nil {
			continue
		}
		var example, read any
		raw, err := json.Marshal(got)
		if err != nil || json.Unmarshal(text, &example) != nil || json.Unmarshal(raw, &read) != nil {
			t.Fatal(err)
		}
		if !within(example, read) {
			t.Errorf("%s: got %s, want %s", id, raw, text)
		}
	}
	for path, item := range s.Paths {
		for method, op := range item {
			if !s.called[op.OperationID] {
				t.Errorf("the client has no %s (%s %s)", op.OperationID, method, path)
			}
		}
	}
}
