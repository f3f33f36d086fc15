package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"facet/cmd/facet/config"
	"facet/internal/must"
	"facet/node/cert"
	"facet/node/wire"
)

var assetsLibrary = config.AssetsDefault().ONNXRuntime

// credentials returns the credentials of all nodes, which must answer.
func credentials(t *testing.T, s wire.Status) (list []wire.Credentials) {
	t.Helper()
	for _, m := range s.Nodes {
		if m.Credentials == nil {
			t.Fatalf("node %s does not answer", m.Name)
		}
		list = append(list, *m.Credentials)
	}
	return list
}

// presented returns the serial number and the issuer of the certificate that
// clients see.
func presented(t *testing.T, port int) string {
	t.Helper()
	c, err := tls.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), &tls.Config{InsecureSkipVerify: true})
	must.Do(t, err)
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0].SerialNumber.String()
}

// The first machine is lost for good, with its node, the administrator's certificate and its copy of the authority.
// Another one takes over with another copy: it removes the lost node, and lets a machine join in its place.
func TestFirstMachineIsLost(t *testing.T) {
	m := form(t)
	safe := filepath.Join(m.dir, "safe")
	must.Do(t, os.CopyFS(safe, os.DirFS(m.authority())))
	must.Do(t, m.process[0].Process.Kill())
	_ = m.process[0].Wait()
	must.Do(t, errors.Join(os.RemoveAll(m.folder(0)), os.RemoveAll(m.authority())))

	second := filepath.Join(m.folder(1), "profile.yaml")
	refused := func(want string, args ...string) {
		t.Helper()
		if out, err := command(t, args...).CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%v: %v, %s, want %q", args, err, out, want)
		}
	}
	refused("facet cluster admin", "node", "remove", "n1", "--force", "--profile", second)
	refused("there is no authority in", "cluster", "admin", "--dir", m.folder(1))
	refused("must name the folder of a node", "cluster", "admin", "--dir", m.dir, "--authority", safe)
	other := filepath.Join(m.dir, "other")
	facet(t, "certs", "init", "--dir", other)
	refused("are not of the authority in", "cluster", "admin", "--dir", m.folder(1), "--authority", other)
	refused("facet cluster admin", "node", "remove", "n1", "--force", "--profile", second)

	for range 2 { // the second time there is nothing to do
		if out := facet(t, "cluster", "admin", "--dir", m.folder(1), "--authority", safe); !strings.Contains(out, second) {
			t.Errorf("it prints %s, want the profile", out)
		}
	}
	m.profile = second
	facet(t, "node", "remove", "n1", "--force", "--profile", second)
	m.ports, m.process = append(m.ports, portsInRow(t, 4)), append(m.process, nil)
	facet(t, slices.Concat([]string{"cluster", "join", m.invite(t, 1, 1, "--authority", safe)}, m.flags(t, 3))...)
	m.start(t, 3)
	until(t, func() (string, bool) {
		s, err := m.look(t)
		up := 0
		for _, n := range s.Nodes {
			if n.State == wire.StateActive && n.Answers {
				up++
			}
		}
		return fmt.Sprintf("%+v, %v", s, err), err == nil && up == 3 && len(s.Warnings) == 0
	})
	facet(t, "tenant", "create", "acme", "--profile", second)
}

// The test forms a cluster of three processes by init, invite and join, and
// replaces all their keys and certificates. Clients meanwhile call all nodes over
// new connections without a retry, and no request fails.
func TestKeysAndCertificatesAreReplacedLive(t *testing.T) {
	m := form(t)
	joinedGivesNoOrders(t, m)
	before := credentials(t, m.status(t))
	shown := presented(t, m.ports[1])
	calls := m.call(t)
	check := func(what string) {
		t.Helper()
		if n := calls.wrong.Swap(0); n > 0 {
			t.Errorf("%s: %d of %d requests failed, the first: %s", what, n, calls.asked.Load(), *calls.first.Swap(nil))
		}
		m.trustedByOpenSSL(t, what)
	}

	facet(t, "cluster", "rotate", "gossip", "--profile", m.profile)
	facet(t, "cluster", "rotate", "cluster", "--profile", m.profile)
	check("rotate gossip and cluster")
	for i, c := range credentials(t, m.status(t)) {
		if len(c.Gossip) != 1 || c.Gossip[0].ID == before[i].Gossip[0].ID || len(c.Cluster) != 1 || c.Cluster[0].ID == before[i].Cluster[0].ID {
			t.Errorf("node %d: keys are %v and %v, were %v and %v", i+1, c.Gossip, c.Cluster, before[i].Gossip, before[i].Cluster)
		}
	}

	if out := facet(t, "cluster", "renew", "n2", "--profile", m.profile); !strings.Contains(out, "node n2 has new certificates") {
		t.Errorf("renew: %s", out)
	}
	if presented(t, m.ports[1]) == shown {
		t.Error("the renewed certificate is not shown")
	}
	check("renew")

	for step := 1; step <= 3; step++ {
		if out := facet(t, "cluster", "rotate", "authority", "--profile", m.profile); !strings.Contains(out, "step "+strconv.Itoa(step)+" of 3") {
			t.Fatalf("step %d: %s", step, out)
		}
		check("rotate authority, step " + strconv.Itoa(step))
	}
	for i, c := range credentials(t, m.status(t)) {
		if len(c.Trusted) != 1 || c.Trusted[0] == before[i].Trusted[0] || c.Issuer != c.Trusted[0] {
			t.Errorf("node %d: trusts %v, has a certificate of %s; was %v", i+1, c.Trusted, c.Issuer, before[i].Trusted)
		}
	}

	calls.stop()
	for i := range m.process { // what was replaced is on the disks, too
		m.stop(t, i)
		m.start(t, i)
	}
	m.whole(t, 3)
	t.Logf("%d requests", calls.asked.Load())
}

// joinedGivesNoOrders uses the profile of a machine that joined, and the same without its
// status certificate, as before 0.3.1.
func joinedGivesNoOrders(t *testing.T, m *machines) {
	t.Helper()
	joined := filepath.Join(m.folder(2), "profile.yaml")
	looks := func() {
		t.Helper()
		for _, command := range [][]string{{"status"}, {"cluster", "status"}, {"shard", "balance", "--plan"}} {
			facet(t, append(command, "--profile", joined)...)
		}
	}
	fails := func(want string, args ...string) {
		t.Helper()
		if out, err := command(t, append(args, "--profile", joined)...).CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%v: %v, %s, want %q", args, err, out, want)
		}
	}
	looks()
	for _, order := range [][]string{
		{"tenant", "create", "mine"}, {"key", "list", "--tenant", "acme"}, {"node", "drain", "n1"}, {"cluster", "rotate", "gossip"}, {"backup", "--to", "file:///tmp/x"},
	} {
		fails("this needs the cluster's admin certificate", order...)
	}
	for _, name := range []string{"status.pem", "status.key"} {
		must.Do(t, os.Remove(filepath.Join(m.folder(2), "certificates", name)))
	}
	fails(`run "facet cluster renew" on the machine with the authority`, "status")
	if out := facet(t, "cluster", "renew", "--profile", m.profile); !strings.Contains(out, "node n3 has new certificates") || strings.Contains(out, "n1") {
		t.Errorf("renew: %s", out)
	}
	looks()
	if out := facet(t, "cluster", "renew", "--profile", m.profile); !strings.Contains(out, "no certificate is due") {
		t.Errorf("renew once more: %s", out)
	}
}

// The operator uses facet certs by hand.
func TestReplacedFilesNeedNoRestart(t *testing.T) {
	t.Parallel()
	m := some(t, 1)
	m.init(t, alone...)
	m.start(t, 0)
	m.serves(t, 1)
	old := presented(t, m.ports[0])
	files := filepath.Join(m.folder(0), "certificates")
	must.Do(t, os.Remove(filepath.Join(files, "server.pem")))
	issue := []string{"certs", "issue", "n1", "--dir", m.authority(), "--data", filepath.Join(m.folder(0), "data"), "--host", "127.0.0.1"}
	out := facet(t, issue...)
	if n := strings.Count(out, "wrote "); n != 6 || !strings.Contains(out, filepath.Join("n1", "server.pem")) {
		t.Errorf("issue says %q", out)
	}
	if again := facet(t, issue...); !strings.Contains(again, "nothing to do") {
		t.Errorf("a second time: %q", again)
	}
	for _, name := range []string{"server.key", "server.pem"} {
		b, err := os.ReadFile(filepath.Join(m.authority(), "n1", name))
		must.Do(t, err)
		must.Do(t, os.WriteFile(filepath.Join(files, name), b, 0o600))
	}
	want, err := cert.LoadPair(filepath.Join(files, "server.pem"), filepath.Join(files, "server.key"))
	must.Do(t, err)
	leaf, err := cert.ParseLeaf(want.Cert)
	must.Do(t, err)
	until(t, func() (string, bool) { // it looks once a second
		shown := presented(t, m.ports[0])
		return "it shows " + shown, shown == leaf.SerialNumber.String() && shown != old
	})
}
