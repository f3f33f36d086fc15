package node_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"facet/internal/id"
	"facet/internal/must"
	"facet/node/cert"
	"facet/node/nodetest"
	"facet/node/transport"
	"facet/node/transport/memnet"
	"facet/node/wire"
	"facet/raftfsm/metafsm"
	"facet/router"
	"facet/router/calls"
)

// cutWithin is the longest time until a node that lost its rights is cut off.
const cutWithin = 2 * time.Second

// source writes a certificate into a folder and loads it.
func source(t *testing.T, ca *cert.CA, issue func() (cert.Pair, error)) *cert.Source {
	t.Helper()
	dir := t.TempDir()
	files := cert.Files{CA: filepath.Join(dir, "ca.pem"), Cert: filepath.Join(dir, "c.pem"), Key: filepath.Join(dir, "c.key")}
	if _, err := cert.Ensure(files, ca, issue); err != nil {
		t.Fatal(err)
	}
	s, err := cert.Load(files, slog.New(slog.DiscardHandler))
	must.Do(t, err)
	return s
}

// intruder is a port between nodes with the certificate of a node, but without a node.
type intruder struct {
	*transport.Mux
	client *transport.Client
}

func openIntruder(t *testing.T, c *nodetest.Cluster, s *cert.Source) *intruder {
	t.Helper()
	const host = "10.0.0.66"
	mux, err := transport.Open(t.Context(), transport.Config{
		Network: c.Network.Host(host), Addr: host + ":7001", TLS: s.PeerConfig(), Log: slog.New(slog.DiscardHandler),
	})
	must.Do(t, err)
	i := &intruder{mux, transport.OpenClient(mux)}
	t.Cleanup(func() {
		if err := errors.Join(i.client.Close(), i.Close()); err != nil {
			t.Error(err)
		}
	})
	return i
}

// ask sends an internal request, on another connection where the one at hand was just closed.
func (i *intruder) ask(t *testing.T, m *nodetest.Member, method string, body []byte) (answer []byte, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for range 10 {
		answer, err = i.client.Call(ctx, m.Config.PeerAddress, method, body)
		if !errors.Is(err, transport.ErrNotSent) && !errors.Is(err, transport.ErrOutcomeUnknown) {
			break
		}
	}
	if remote, ok := errors.AsType[*transport.RemoteError](err); ok && remote.Payload != nil {
		return nil, calls.DecodeFault(remote.Payload)
	}
	return answer, err
}

// streams opens one stream of each kind that no group's end closes by itself.
func (i *intruder) streams(t *testing.T, m *nodetest.Member) []net.Conn {
	t.Helper()
	var list []net.Conn
	for _, kind := range []transport.Kind{transport.KindRaft, transport.KindPeer, transport.KindGossip} {
		c, err := i.Dial(t.Context(), kind, id.Meta, m.Config.PeerAddress)
		if err != nil {
			t.Fatalf("stream %c: %v", kind, err)
		}
		t.Cleanup(func() { c.Close() })
		list = append(list, c)
	}
	return list
}

// relayed opens a stream to a node through another node.
func (i *intruder) relayed(t *testing.T, through, to *nodetest.Member) error {
	t.Helper()
	i.Reroute(to.Config.PeerAddress, transport.Route{Through: through.Config.PeerAddress, To: to.Node.ID()})
	defer i.Reroute(to.Config.PeerAddress, transport.Route{})
	c, err := i.Dial(t.Context(), transport.KindPeer, 0, to.Config.PeerAddress)
	if err != nil {
		return err
	}
	return c.Close()
}

// ends reports whether the other end closes a connection in time.
func ends(t *testing.T, c net.Conn, within time.Duration) bool {
	t.Helper()
	must.Do(t, c.SetReadDeadline(time.Now().Add(within)))
	_, err := io.ReadAll(c)
	var timeout net.Error
	return !errors.As(err, &timeout) || !timeout.Timeout()
}

// envelope is a request of the router about meta: {1: 0, 2: query}, as CBOR.
func envelope(query []byte) []byte {
	b := []byte{0xa2, 0x01, 0x00, 0x02}
	if query == nil {
		return append(b, 0xa0)
	}
	b = binary.BigEndian.AppendUint16(append(b, 0x59), uint16(len(query)))
	return append(b, query...)
}

// tenantsMethods are requests of all packages that serve peers.
var tenantsMethods = []string{
	"meta.propose", "meta.key.new", "meta.key.revoke", "group.point", "shard.search", "shard.entries", "shard.register", "shard.events",
	"shard.purge", "job.page", "node.status", "node.replica", "node.sum", "node.diverged", "node.demote", "node.ring", "node.rotate",
	"node.certificates", "node.part", "node.propose", "node.sums", "node.heard", "node.wanted", "node.beats", "node.proofs", "groups.read",
}

func newTenant() []byte {
	return metafsm.CreateTenantOp.Encode(metafsm.CreateTenant{Tenant: metafsm.Tenant{ID: id.Tenant{UUID: id.Random([16]byte{7})}, Name: "planted"}})
}

// TestRemovedNodeReachesNothing keeps streams open with the certificate of a node that
// is removed, and opens new ones afterwards.
func TestRemovedNodeReachesNothing(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 4}, func(t *testing.T, cluster *nodetest.Cluster) {
		first, last := cluster.Nodes[0], cluster.Nodes[3]
		who := last.Node.ID()
		setState(t, first.Node, who, wire.StateDraining)
		eventually(t, first.Node, "the drained node holds nothing", func(s wire.Status) bool { return settled(s) && holds(s, who) == 0 })
		cluster.Stop(3)
		i := openIntruder(t, cluster, source(t, cluster.Authority, func() (cert.Pair, error) { return cluster.Authority.IssueNode(who, nil) }))
		for _, m := range cluster.Nodes[:3] {
			if _, err := i.ask(t, m, "meta.index", envelope(nil)); router.KindOf(err) == router.Forbidden {
				t.Errorf("before: %v", err)
			}
		}
		if err := i.relayed(t, first, cluster.Nodes[1]); err != nil {
			t.Errorf("before: through a relay: %v", err)
		}
		var open []net.Conn
		for _, m := range cluster.Nodes[:3] {
			open = append(open, i.streams(t, m)...)
		}
		setState(t, first.Node, who, wire.StateRemoved)
		late := time.Now().Add(cutWithin)
		for n, c := range open {
			if !ends(t, c, time.Until(late)) {
				t.Errorf("node %d: stream %d is open %v after the removal", n/3+1, n%3, cutWithin)
			}
		}
		if err := i.relayed(t, first, cluster.Nodes[1]); err == nil {
			t.Error("a node relays a stream of the removed one")
		}
		member, err := json.Marshal(id.NewMember(who, 0))
		must.Do(t, err)
		for n, m := range cluster.Nodes[:3] {
			for k, c := range i.streams(t, m) {
				if k != 1 && !ends(t, c, cutWithin) { // requests wait for one
					t.Errorf("node %d takes a new stream %d", n+1, k)
				}
			}
			for _, method := range append(slices.Clone(tenantsMethods), "node.founders", "meta.index") {
				if _, err := i.ask(t, m, method, envelope(newTenant())); router.KindOf(err) != router.Forbidden {
					t.Errorf("node %d, %s: %v, want a refusal that names the removal", n+1, method, err)
				}
			}
			if answer, err := i.ask(t, m, "node.standing", member); err != nil || !strings.Contains(string(answer), `"removed":true`) {
				t.Errorf("node %d tells the removed one %s, %v", n+1, answer, err)
			}
		}
	})
}

// TestUnrecordedNodeReachesNoTenant has a certificate of the authority and no record in meta.
func TestUnrecordedNodeReachesNoTenant(t *testing.T) {
	nodetest.Run(t, nodetest.Options{}, func(t *testing.T, cluster *nodetest.Cluster) {
		who := id.Node{UUID: id.Random([16]byte{9})}
		i := openIntruder(t, cluster, source(t, cluster.Authority, func() (cert.Pair, error) { return cluster.Authority.IssueNode(who, nil) }))
		if err := i.relayed(t, cluster.Nodes[0], cluster.Nodes[1]); err == nil {
			t.Error("a node relays a stream of one without a record")
		}
		own := metafsm.PutNode{Node: metafsm.Node{ID: who, Member: id.NewMember(who, 1), Name: "late", Level: metafsm.Level}}
		other := own
		other.Node.ID = cluster.Nodes[1].Node.ID()
		elsewhere := envelope(metafsm.PutNodeOp.Encode(own))
		elsewhere[2] = 1 // the same for a shard
		for n, m := range cluster.Nodes {
			for k, c := range i.streams(t, m) {
				if ends(t, c, 200*time.Millisecond) {
					t.Errorf("node %d closes stream %d, which a node that joins needs", n+1, k)
				}
			}
			for what, body := range map[string][]byte{
				"a tenant": envelope(newTenant()), "another node's record": envelope(metafsm.PutNodeOp.Encode(other)), "a command of a shard": elsewhere, "nothing": nil,
			} {
				if _, err := i.ask(t, m, "meta.propose", body); router.KindOf(err) != router.Unavailable || !strings.Contains(err.Error(), "no record") {
					t.Errorf("node %d, propose %s: %v", n+1, what, err)
				}
			}
			for _, method := range tenantsMethods {
				if _, err := i.ask(t, m, method, envelope(newTenant())); router.KindOf(err) != router.Unavailable || !strings.Contains(err.Error(), "no record") {
					t.Errorf("node %d, %s: %v", n+1, method, err)
				}
			}
		}
		if _, err := cluster.Nodes[0].Node.Router().TenantNamed(t.Context(), "planted"); router.KindOf(err) != router.NotFound {
			t.Errorf("the tenant that was proposed: %v", err)
		}
		accepted := 0
		for _, m := range cluster.Nodes { // the leader takes it
			if _, err := i.ask(t, m, "meta.propose", envelope(metafsm.PutNodeOp.Encode(own))); err == nil {
				accepted++
			}
			if _, err := i.ask(t, m, "node.founders", nil); err != nil {
				t.Errorf("founders: %v", err)
			}
		}
		if accepted != 1 {
			t.Errorf("%d nodes took the record of a node that joins, want meta's leader", accepted)
		}
	})
}

// TestRemovalByForceLosesNothing removes a node that runs and holds replicas: it is told and
// stops, and the others rebuild its replicas.
func TestRemovalByForceLosesNothing(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 4}, func(t *testing.T, cluster *nodetest.Cluster) {
		client := cluster.Client("bank")
		first, gone := cluster.Nodes[0], cluster.Nodes[2]
		gallery(t, client, first.URL, "staff", 1000)
		known := people(t, client, first.URL, 0, 20)
		order := wire.Order{Node: gone.Node.ID(), State: wire.StateRemoved, Force: true}
		must.Do(t, first.Node.Admin().SetNodeState(t.Context(), order))
		ended(t, gone, "removed from its cluster")
		cluster.Stop(2)
		eventually(t, first.Node, "the other three hold all", func(s wire.Status) bool {
			return settled(s) && holds(s, cluster.Nodes[0].Node.ID()) == 4 && holds(s, cluster.Nodes[1].Node.ID()) == 4 && holds(s, cluster.Nodes[3].Node.ID()) == 4
		})
		cluster.Nodes = slices.Delete(cluster.Nodes, 2, 3)
		everybody(t, client, cluster, known)

		// A vote that is needed is not taken away, not even by force.
		cluster.Stop(2)
		eventually(t, first.Node, "a node is missed", func(s wire.Status) bool {
			return slices.ContainsFunc(s.Nodes, func(m wire.Member) bool { return !m.Alive && m.State == wire.StateActive })
		})
		order.Node = cluster.Nodes[1].Node.ID()
		if err := first.Node.Admin().SetNodeState(t.Context(), order); err == nil || !strings.Contains(err.Error(), "drain the node first") {
			t.Errorf("a removal that leaves groups without a majority: %v", err)
		}
	})
}

func TestAdminPortObeysAdministratorsOnly(t *testing.T) {
	nodetest.Run(t, nodetest.Options{}, func(t *testing.T, cluster *nodetest.Cluster) {
		ca, m, own := cluster.Authority, cluster.Nodes[0], cluster.Nodes[1].Node.ID()
		admin := source(t, ca, func() (cert.Pair, error) { return ca.IssueAdmin("root") })
		status := source(t, ca, func() (cert.Pair, error) { return ca.IssueStatus(own) })
		peer := source(t, ca, func() (cert.Pair, error) { return ca.IssueNode(own, nil) })
		f := func(method, path string, looks bool) {
			t.Helper()
			if code, body := adminCall(t, m, admin, method, path); code == http.StatusForbidden {
				t.Errorf("%s %s by an administrator: %s", method, path, body)
			}
			for want, s := range map[string]*cert.Source{"the cluster's admin certificate": nil, "facet cluster renew": peer} {
				if code, body := adminCall(t, m, s, method, path); code != http.StatusForbidden || !strings.Contains(body, want) {
					t.Errorf("%s %s: got %d %s, want 403 with %q", method, path, code, body, want)
				}
			}
			if code, body := adminCall(t, m, status, method, path); looks != (code == http.StatusOK) || !looks && code != http.StatusForbidden {
				t.Errorf("%s %s by who may look: %d %s", method, path, code, body)
			}
		}
		f("GET", wire.PathStatus, true)
		f("GET", wire.PathPlan, true)
		for _, path := range []string{wire.PathKeys + "?tenant=x", wire.PathTenants, wire.PathProcessing + "?tenant=x", wire.PathBackup, wire.PathProfiles + "heap"} {
			f("GET", path, false)
		}
		f("PATCH", wire.PathTenants, false)
		f("DELETE", wire.PathKeys+"/x", false)
		for _, path := range []string{
			wire.PathTenants, wire.PathKeys, wire.PathNodes, wire.PathShards, wire.PathReplicas, wire.PathWrites, wire.PathCertificates, wire.PathRings,
			wire.PathBackup, wire.PathBackupVerify, wire.PathBackupList, wire.PathErasures, wire.PathRestore,
		} {
			f("POST", path, false)
		}
		cluster.WaitReady() // a busy machine may have changed a leader
		for _, path := range []string{wire.PathLive, wire.PathReady, wire.PathMetrics} {
			if code, body := adminCall(t, m, nil, "GET", path); code != http.StatusOK {
				t.Errorf("%s without a certificate: %d %s", path, code, body)
			}
		}
		cluster.Stop(1)
		must.Do(t, m.Node.Admin().SetNodeState(t.Context(), wire.Order{Node: own, State: wire.StateRemoved, Force: true}))
		code, body := 0, ""
		for late := time.Now().Add(cutWithin); time.Now().Before(late) && code != http.StatusForbidden; time.Sleep(50 * time.Millisecond) {
			code, body = adminCall(t, m, status, "GET", wire.PathStatus)
		}
		if code != http.StatusForbidden || !strings.Contains(body, "was removed") {
			t.Errorf("the removed node's certificate still looks: %d", code)
		}
	})
}

// kept is a connection to an admin port that stays open between requests.
type kept struct {
	*tls.Conn
	in *bufio.Reader
}

func keep(t *testing.T, m *nodetest.Member, s *cert.Source) kept {
	t.Helper()
	c, err := m.Dial(t.Context(), m.Config.AdminAddress, s.AdminClientConfig())
	must.Do(t, err)
	t.Cleanup(func() { c.Close() })
	return kept{c, bufio.NewReader(c)}
}

func (k kept) status(t *testing.T) error {
	t.Helper()
	if _, err := io.WriteString(k, "GET "+wire.PathStatus+" HTTP/1.1\r\nHost: n\r\n\r\n"); err != nil {
		return err
	}
	a, err := http.ReadResponse(k.in, nil)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	if _, err := io.Copy(io.Discard, a.Body); err != nil || a.StatusCode != http.StatusOK {
		return errors.Join(err, errors.New(a.Status))
	}
	return nil
}

// TestRetiredAuthorityIsCutOff replaces the authority under load, with streams and
// operators' connections open that the old one's certificates opened.
func TestRetiredAuthorityIsCutOff(t *testing.T) {
	nodetest.Run(t, nodetest.Options{}, func(t *testing.T, cluster *nodetest.Cluster) {
		ca := cluster.Authority
		next, err := ca.Successor()
		must.Do(t, err)
		if err := os.WriteFile(cluster.Roots, ca.CertPEM(), 0o600); err != nil { // clients trust both from the beginning
			t.Fatal(err)
		}
		client, other := cluster.Client("acme"), cluster.Client("other")
		gallery(t, client, cluster.Nodes[0].URL, "staff", 10_000)
		who := id.Node{UUID: id.Random([16]byte{9})}
		i := openIntruder(t, cluster, source(t, ca, func() (cert.Pair, error) { return ca.IssueNode(who, nil) }))
		admin := source(t, ca, func() (cert.Pair, error) { return ca.IssueAdmin("root") })
		var streams []net.Conn
		var operators []kept
		for _, m := range cluster.Nodes {
			streams = append(streams, i.streams(t, m)[0]) // nobody closes a Raft group's for being idle
			operators = append(operators, keep(t, m, admin))
		}
		open := func(step string) {
			t.Helper()
			for n, c := range streams {
				if ends(t, c, 50*time.Millisecond) {
					t.Errorf("%s: stream %d is closed", step, n)
				}
			}
			for n, k := range operators {
				if err := k.status(t); err != nil {
					t.Errorf("%s: an operator's connection to node %d: %v", step, n+1, err)
				}
			}
		}
		order := func(o wire.CertificateOrder) (a wire.CertificateAnswer) {
			t.Helper()
			a, err := cluster.Nodes[0].Node.Certificates(t.Context(), o)
			must.Do(t, err)
			return a
		}
		whileBusy(t, cluster, client, other, func() {
			open("before")
			for _, m := range cluster.Nodes {
				order(wire.CertificateOrder{Node: m.Node.ID(), Authorities: ca.CertPEM()})
			}
			time.Sleep(cutWithin)
			open("both are trusted")
			for _, m := range cluster.Nodes {
				renew(t, next, m.Node.ID(), order)
			}
			time.Sleep(cutWithin)
			open("all are renewed")
			for _, m := range cluster.Nodes {
				streams = append(streams, i.streams(t, m)...)
			}
			slow(cluster)
			defer statuses(t, cluster)()
			for _, m := range cluster.Nodes {
				order(wire.CertificateOrder{Node: m.Node.ID(), Authorities: next.Alone().CertPEM()})
			}
			late := time.Now().Add(cutWithin)
			for n, c := range streams {
				if !ends(t, c, time.Until(late)) {
					t.Errorf("stream %d is open %v after the end", n, cutWithin)
				}
			}
			for n, k := range operators {
				if !ends(t, k, time.Until(late)) {
					t.Errorf("an operator's connection to node %d is open %v after the end", n+1, cutWithin)
				}
			}
		})
	})
}

// slow delays all that nodes send one another, so that a connection that is cut has a question
// under way.
func slow(c *nodetest.Cluster) {
	for _, from := range c.Nodes {
		for _, to := range c.Nodes {
			c.Network.Set(from.Host, to.Host, memnet.Link{Delay: 5 * time.Millisecond})
		}
	}
}

// statuses asks the first node without a pause for the state of all nodes, which must report,
// until the function that it returns is called.
func statuses(t *testing.T, c *nodetest.Cluster) (stop func()) {
	t.Helper()
	var work sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	work.Go(func() {
		for ctx.Err() == nil {
			for _, m := range c.Nodes[0].Node.Admin().Status(t.Context()).Nodes {
				if m.Credentials == nil {
					t.Errorf("node %s has no report", m.Name)
				}
			}
		}
	})
	return func() { cancel(); work.Wait() }
}

// renew gives a node certificates of an authority.
func renew(t *testing.T, ca *cert.CA, who id.Node, order func(wire.CertificateOrder) wire.CertificateAnswer) {
	t.Helper()
	a := order(wire.CertificateOrder{Node: who})
	o := wire.CertificateOrder{Node: who, Authorities: ca.CertPEM()}
	var errs [3]error
	o.Certificate, errs[0] = ca.SignNode(a.Request, who, a.Hosts)
	o.Server, errs[1] = ca.SignServer(a.ServerRequest, a.Hosts)
	o.Status, errs[2] = ca.SignStatus(a.StatusRequest, who)
	must.Do(t, errors.Join(errs[:]...))
	order(o)
}
