package admin

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"facet/cmd/facet/authority"
	"facet/internal/id"
	"facet/internal/must"
	"facet/node/cert"
	"facet/node/wire"
)

// port serves handler like a node's admin port, with the cluster's own TLS.
func port(t *testing.T, f *authority.Folder, handler http.HandlerFunc) (address string) {
	t.Helper()
	_, err := f.Ensure(authority.NodeCertificates{Name: "n1", ID: id.Node{UUID: id.Random([16]byte{1})}, Hosts: []string{"127.0.0.1"}})
	must.Do(t, err)
	dir := f.Node("n1")
	source, err := cert.Load(cert.Files{
		CA: filepath.Join(dir, "ca.pem"), Cert: filepath.Join(dir, "node.pem"), Key: filepath.Join(dir, "node.key"),
	}, slog.New(slog.DiscardHandler))
	must.Do(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	s := &httptest.Server{
		Listener: tls.NewListener(l, source.AdminServerConfig()),
		Config:   &http.Server{Handler: handler, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)},
	}
	s.Start()
	t.Cleanup(s.Close)
	return l.Addr().String()
}

func folder(t *testing.T, name string) *authority.Folder {
	t.Helper()
	f, err := authority.OpenPlain(t.TempDir(), name)
	must.Do(t, err)
	return f
}

// nobody returns an address without a listener.
func nobody(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	defer l.Close()
	return l.Addr().String()
}

func TestNextNodeIsAskedWhenOneIsDown(t *testing.T) {
	t.Parallel()
	f := folder(t, "one")
	up := port(t, f, func(w http.ResponseWriter, r *http.Request) {
		var in wire.NewTenant
		if r.Method != http.MethodPost || r.URL.Path != wire.PathTenants || json.NewDecoder(r.Body).Decode(&in) != nil {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		json.NewEncoder(w).Encode(wire.TenantKeys{Name: in.Name, AccessKey: "A", SecretKey: "S"})
	})
	c, err := NewClient(Target{Addresses: []string{nobody(t), up}, Certificates: f.Admin()})
	must.Do(t, err)
	got, err := c.CreateTenant(t.Context(), "acme")
	want := wire.TenantKeys{Name: "acme", AccessKey: "A", SecretKey: "S"}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v %s", err, d)
	}
}

// The error has the node's words.
func TestRefusalIsFinal(t *testing.T) {
	t.Parallel()
	f := folder(t, "one")
	var calls atomic.Int32
	refuse := port(t, f, func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		w.WriteHeader(http.StatusBadRequest)
		w.Write([]byte(`{"message":"a tenant needs a name"}`))
	})
	c, err := NewClient(Target{Addresses: []string{refuse, refuse}, Certificates: f.Admin()})
	must.Do(t, err)
	_, err = c.CreateTenant(t.Context(), "")
	var answer *AnswerError
	if !errors.As(err, &answer) || answer.Status != 400 || err.Error() != "a tenant needs a name" || calls.Load() != 1 {
		t.Errorf("got %v after %d calls", err, calls.Load())
	}
}

func TestUnreachableClusterIsReported(t *testing.T) {
	t.Parallel()
	c, err := NewClient(Target{Addresses: []string{nobody(t), nobody(t)}, Certificates: folder(t, "one").Admin()})
	must.Do(t, err)
	_, err = c.Status(t.Context())
	var unreachable *UnreachableError
	if !errors.As(err, &unreachable) || len(unreachable.Errs) != 2 {
		t.Errorf("got %v", err)
	}
}

func TestNodeOfAnotherClusterIsNotTrusted(t *testing.T) {
	t.Parallel()
	foreign := port(t, folder(t, "two"), func(http.ResponseWriter, *http.Request) { t.Error("the request got through") })
	c, err := NewClient(Target{Addresses: []string{foreign}, Certificates: folder(t, "one").Admin()})
	must.Do(t, err)
	if c.Ready(t.Context(), foreign) == nil {
		t.Error("ready")
	}
}

func TestTableShowsLeadersLagAndDownNodes(t *testing.T) {
	t.Parallel()
	n1, n2 := id.Node{UUID: id.Random([16]byte{1})}, id.Node{UUID: id.Random([16]byte{2})}
	s := wire.Status{
		Founded: true, Shards: 1, Replicas: 3, Pack: strings.Repeat("ab", 32),
		Nodes: []wire.Member{
			{ID: n1, Name: "n1", Zone: "east", URL: "https://a", Alive: true, Answers: true, Version: "v", Groups: []wire.GroupStatus{
				{Group: 0, Role: "follower", Term: 3, Commit: 9, Voters: 3},
				{Group: 1, Role: "leader", Term: 5, Commit: 12, Voters: 3, Events: 4},
			}},
			{ID: n2, Name: "n2", URL: "https://b", Alive: true, Answers: true, Version: "v", Groups: []wire.GroupStatus{
				{Group: 0, Role: "leader", Term: 3, Commit: 9, Voters: 3},
				{Group: 1, Role: "leader", Term: 4, Commit: 10, Lag: 2, Voters: 3, Events: 3}, // deposed, and does not know it yet
			}},
			{Name: "n3", URL: "https://c"},
		},
		Moves:    []wire.Move{{Shard: 1, To: []id.Node{n2}, From: []id.Node{n1}, Behind: 7}},
		Warnings: []string{"one more death would stop writes"},
	}
	var b bytes.Buffer
	must.Do(t, Write(&b, s))
	want := []string{
		"n1    up     east  https://a  1       1      4       0    v",
		"n3    down   -     https://c  -       -      -       -",
		"> shard 1 moves to n2 (7 entries behind), away from n1",
		"meta     n2      3     3       9       -",
		"shard 1  n1      5     3       12      4       n1 leader (0), n2 leader (2)",
		"! one more death would stop writes",
	}
	for _, line := range want {
		if !strings.Contains(b.String(), line) {
			t.Errorf("missing %q in\n%s", line, b.String())
		}
	}
}

func TestTableShowsWantedAndPresentReplicas(t *testing.T) {
	t.Parallel()
	four := []wire.Member{{State: wire.StateActive}, {State: wire.StateActive}, {State: wire.StateActive}, {State: wire.StateDraining}}
	for _, c := range []struct {
		wanted int
		voting map[int]int
		want   string
	}{
		{3, map[int]int{3: 4}, ""},
		{3, nil, ""}, // no leader is known
		{1, map[int]int{1: 1, 2: 1, 3: 2}, "> each shard should have 1 replicas: 1 of 4 shards have 1, 1 of 4 shards have 2, 2 of 4 shards have 3\n"},
		{5, map[int]int{3: 4}, "> each shard should have 5 replicas: 4 of 4 shards have 3; that takes 5 active nodes, and there are 3\n"},
	} {
		var b bytes.Buffer
		if err := WriteMoves(&b, wire.Status{Shards: 4, Replicas: c.wanted, Voting: c.voting, Nodes: four}); err != nil || strings.ReplaceAll(b.String(), "\n  ", " ") != c.want {
			t.Errorf("%d of %v: %v, %q", c.wanted, c.voting, err, b.String())
		}
	}
}

func TestTableShowsPartsThatFail(t *testing.T) {
	t.Parallel()
	last := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	s := wire.Status{Founded: true, Nodes: []wire.Member{{Name: "n1", Parts: []wire.Part{
		{Name: "controller", Running: true, Last: last},
		{Name: "sizes", Running: true, Last: last, Error: "no such folder"},
		{Name: "checks"},
	}}}}
	var b strings.Builder
	must.Do(t, Write(&b, s))
	want := "~ n1: the last round of sizes, at 2026-11-23T12:00:00Z, failed: no such folder\n~ n1: checks does not run\n"
	if got := b.String(); !strings.Contains(got, want) || strings.Contains(got, "controller") || strings.Contains(got, "no warnings") {
		t.Errorf("got %s, want lines %q, none of the controller, and no word of no warnings", got, want)
	}
}
