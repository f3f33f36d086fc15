package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"facet/cmd/facet/process"
)

func TestEveryNodeServesEveryRequest(t *testing.T) {
	k := shared(t).client(t, 10)
	registered := k.register(t, 0, obama)

	var found candidates
	k.post(t, 2, "/v1.1/face/search", map[string]any{"probe": encoded(t, anotherObama)}).want(t, 200, &found)
	if len(found.Candidates) != 1 || found.Candidates[0].ID != registered.ID || found.Candidates[0].Score < 7000 {
		t.Errorf("another photo of the same person: got %+v, want %s", found, registered.ID)
	}
	for _, stranger := range []string{biden, collins} {
		k.post(t, 1, "/v1.1/face/search", map[string]any{"probe": encoded(t, stranger)}).want(t, 404, &found)
		if len(found.Candidates) != 0 {
			t.Errorf("%s: got %+v, want nobody", stranger, found)
		}
	}
	var v struct{ Score int }
	verify := map[string]any{"id": registered.ID, "probe": encoded(t, obama)}
	k.post(t, 1, "/v1.1/face/verify", verify).want(t, 200, &v)
	if v.Score != 9999 {
		t.Errorf("the same photo: score %d, want 9999", v.Score)
	}
	verify["probe"] = encoded(t, biden)
	k.post(t, 2, "/v1.1/face/verify", verify).want(t, 404, &v)
	if v.Score >= 7000 {
		t.Errorf("another person: score %d", v.Score)
	}

	var l listing
	k.get(t, 1, "/v1.1/subjects").want(t, 200, &l)
	if l.Total != 1 || l.Subjects[0].ID != registered.ID || l.Subjects[0].EventID != registered.EventID || l.Subjects[0].Status != "A" {
		t.Errorf("list: got %+v", l)
	}
	k.call(t, 2, "DELETE", "/v1.1/subjects/"+registered.ID, nil).want(t, 204, nil)
	k.get(t, 0, "/v1.1/subjects").want(t, 200, &l)
	if l.Total != 1 || l.Subjects[0].Status != "D" {
		t.Errorf("list after unregister: got %+v", l)
	}
	k.post(t, 0, "/v1.1/face/search", map[string]any{"probe": encoded(t, obama)}).want(t, 404, nil)
	k.call(t, 0, "DELETE", "/v1.1/subjects/"+registered.ID, nil).want(t, 404, nil)
}

func TestTenantReachesOnlyOwnData(t *testing.T) {
	c := shared(t)
	k := c.client(t, 10)
	k.register(t, 0, obama)
	out, err := facet("tenant", "create", "other-"+strings.ToLower(t.Name()), "--dir", c.dir, "--json")
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var keys struct {
		AccessKey string `json:"access_key"`
		SecretKey string `json:"secret_key"`
	}
	answer{200, []byte(out)}.want(t, 200, &keys)
	other := c.keyless(t)
	other.signer.AccessKey, other.signer.SecretKey = keys.AccessKey, keys.SecretKey
	var galleries struct{ Galleries []struct{ ID string } }
	other.get(t, 1, "/api/galleries").want(t, 200, &galleries)
	if len(galleries.Galleries) != 0 {
		t.Errorf("another tenant sees %+v", galleries)
	}
	other.apiKey = k.apiKey
	var refusal struct{ Message string }
	other.get(t, 2, "/v1.1/subjects").want(t, 403, &refusal)
	if refusal.Message != "Forbidden" {
		t.Errorf("another tenant's API key: got %q", refusal.Message)
	}
}

func TestRestartedClusterHasItsData(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	first := startDev(t, dir, "--nodes", "3")
	k := first.client(t, 10)
	registered := k.register(t, 0, obama)
	gone := k.register(t, 1, biden)
	k.call(t, 2, "DELETE", "/v1.1/subjects/"+gone.ID, nil).want(t, 204, nil)
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	for _, n := range first.info.Nodes {
		if pid, running := process.Holder(filepath.Join(n.Dir, "node.pid")); running {
			t.Errorf("process %d still runs in %s", pid, n.Dir)
		}
	}
	if out, err := facet("dev", "--dir", dir, "--nodes", "2"); err == nil || !strings.Contains(out, "3 nodes") {
		t.Errorf("another number of nodes: got %v, %s", err, out)
	}
	again := startDev(t, dir)
	defer func() {
		if err := again.stop(); err != nil {
			t.Error(err)
		}
	}()
	// Only the processes differ.
	for _, i := range []*info{&first.info, &again.info} {
		for n := range i.Nodes {
			i.Nodes[n].PID = 0
		}
	}
	if d := cmp.Diff(first.info, again.info); d != "" {
		t.Errorf("dev.json changed: %s", d)
	}
	for node := range again.info.Nodes {
		if d := cmp.Diff(map[string]int{registered.ID: 1}, k.active(t, node)); d != "" {
			t.Errorf("list at node %d: %s", node, d)
		}
	}
	var found candidates
	k.post(t, 2, "/v1.1/face/search", map[string]any{"probe": encoded(t, anotherObama)}).want(t, 200, &found)
	if len(found.Candidates) != 1 || found.Candidates[0].ID != registered.ID {
		t.Errorf("search: got %+v, want %s", found, registered.ID)
	}
}

func TestLogsHaveNoPhotoAndNoSecret(t *testing.T) {
	c := shared(t)
	k := c.client(t, 10)
	r := k.register(t, 0, obama)
	k.post(t, 1, "/v1.1/face/search", map[string]any{"probe": encoded(t, anotherObama)}).want(t, 200, nil)
	for _, n := range []string{"n1", "n2", "n3"} {
		b, err := os.ReadFile(filepath.Join(c.dir, n+".log"))
		if err != nil {
			t.Fatal(err)
		}
		log := string(b)
		for what, secret := range map[string]string{
			"photo": encoded(t, anotherObama)[1000:1040], "secret key": c.info.SecretKey, "API key": k.apiKey, "subject": r.ID,
		} {
			if strings.Contains(log, secret) {
				t.Errorf("%s.log has the %s", n, what)
			}
		}
	}
}

func TestCommandLineExplainsErrors(t *testing.T) {
	t.Parallel()
	f := func(code int, want string, args ...string) {
		t.Helper()
		out, err := facet(args...)
		exit, ok := errors.AsType[exitCoder](err)
		if !ok || exit.ExitCode() != code || !strings.Contains(out, want) {
			t.Errorf("facet %v: got %v, %q, want exit %d and %q", args, err, out, code, want)
		}
	}
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	f(2, "no command", "fly")
	f(2, "--nodes", "dev", "--nodes", "0")
	f(2, "unknown flag", "serve", "--fast")
	f(2, "--dir is needed", "serve")
	f(1, "no cluster", "status", "--dir", nowhere)
	f(1, "no cluster", "tenant", "create", "x", "--dir", nowhere)
	f(2, "arg", "tenant", "create")
	f(1, "make setup", "serve", "--dir", nowhere, "--certificates", "c", "--cluster-key", "k", "--gossip-key", "g", "--models", nowhere)
}

type exitCoder interface {
	error
	ExitCode() int
}
