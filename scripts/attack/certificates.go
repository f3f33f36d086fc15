package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"facet/cmd/facet/process"
	"facet/internal/id"
	"facet/internal/testkit"
	"facet/node/cert"
	"facet/node/transport"
	"facet/node/wire"
	"facet/router"
	"facet/router/calls"
)

const (
	peerWait = 3 * time.Second
	// endWait is how long a removed node that is started again may take to end.
	endWait = 30 * time.Second
)

// orders are requests to the admin port that need the role admin.
var orders = []string{
	"GET " + wire.PathKeys + "?tenant=canary-tenant-victim", "POST " + wire.PathKeys, "DELETE " + wire.PathKeys + "/K?tenant=canary-tenant-victim", "POST " + wire.PathTenants,
	"POST " + wire.PathNodes, "POST " + wire.PathShards, "POST " + wire.PathWrites, "POST " + wire.PathCertificates, "POST " + wire.PathRings, "POST " + wire.PathBackup,
	"GET " + wire.PathBackup, "POST " + wire.PathErasures, "POST " + wire.PathRestore,
}

// readings are requests that a status certificate may make, too.
var readings = []string{"GET " + wire.PathStatus, "GET " + wire.PathPlan}

// shown is a certificate to show at a port.
type shown struct {
	what string
	pair *tls.Certificate // nil: none
	// reads says that it may read the cluster's state.
	reads bool
}

// intrusion calls ports with certificates that do not open them.
type intrusion struct{ *attack }

// certificates calls the admin ports and the ports between nodes with wrong certificates.
func (a intrusion) certificates(c *tally) error {
	peers, admins, err := a.ports()
	if err != nil {
		return err
	}
	wrong := []shown{{what: "nobody"}}
	foreign, err := cert.NewCA("facet-dev") // the name that facet dev gives its authority
	if err != nil {
		return err
	}
	who := a.info.Nodes[0].ID
	for what, issue := range map[string]func() (cert.Pair, error){
		"a foreign authority's node":   func() (cert.Pair, error) { return foreign.IssueNode(who, nil) },
		"a foreign authority's admin":  func() (cert.Pair, error) { return foreign.IssueAdmin("admin") },
		"a foreign authority's status": func() (cert.Pair, error) { return foreign.IssueStatus(who) },
		"a foreign authority's server": func() (cert.Pair, error) { return foreign.IssueServer([]string{"127.0.0.1"}) },
	} {
		pair, err := issue()
		if err != nil {
			return err
		}
		loaded, err := tls.X509KeyPair(pair.Cert, pair.Key)
		if err != nil {
			return err
		}
		wrong = append(wrong, shown{what: what, pair: &loaded})
	}
	own := func(what, name string) (s shown, err error) {
		pair, err := tls.LoadX509KeyPair(a.certificate(name)+".pem", a.certificate(name)+".key")
		return shown{what: what, pair: &pair}, err
	}
	node, err1 := own("a node", "n1/node")
	server, err2 := own("a public port", "n1/server")
	status, err3 := own("a status", "n1/status")
	admin, err4 := own("the admin", "admin/admin")
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return err
	}
	status.reads = true
	for _, s := range append(wrong, node, server, status) {
		for _, port := range admins {
			a.order(c, port, s)
		}
	}
	for _, s := range append(wrong, server, status, admin) {
		for _, port := range peers {
			a.knock(c, port, s)
		}
	}
	for _, port := range admins { // or the requests above would prove nothing
		for _, q := range readings {
			if got, err := a.ask(port, q, admin.pair); err != nil || got != http.StatusOK {
				return fmt.Errorf("%s with the admin's certificate: %d, %w", q, got, err)
			}
		}
	}
	return nil
}

// certificate returns the path of a certificate of the cluster, without its ending.
func (a intrusion) certificate(name string) string {
	return filepath.Join(filepath.Dir(a.info.CAFile), filepath.FromSlash(name))
}

// order makes all requests of operators. None may be served but those that s may make.
func (a intrusion) order(c *tally, port string, s shown) {
	for _, q := range append(append([]string{}, orders...), readings...) {
		c.try()
		got, err := a.ask(port, q, s.pair)
		if s.reads && slices.Contains(readings, q) && got == http.StatusOK {
			continue
		}
		if err == nil && got != http.StatusForbidden || isTimeout(err) {
			c.got("%s at the admin port with the certificate of %s: %d, %v", q, s.what, got, err)
		}
	}
}

// ask makes one request at an admin port. An error means that the port has refused the
// certificate.
func (intrusion) ask(port, request string, pair *tls.Certificate) (status int, err error) {
	method, path, _ := strings.Cut(request, " ")
	config := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}
	if pair != nil {
		config.Certificates = []tls.Certificate{*pair}
	}
	client := testkit.Client{HTTP: &http.Client{Timeout: peerWait, Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}}
	a, err := client.Send(context.Background(), "https://"+port, testkit.Request{Method: method, Target: path, Body: []byte("{}")})
	return a.Status, err
}

// knock opens a stream of each kind at a port between nodes. The port must close it
// without a byte.
func (a intrusion) knock(c *tally, port string, s shown) {
	for _, kind := range []transport.Kind{transport.KindRaft, transport.KindPeer, transport.KindGossip, transport.KindRelay} {
		c.try()
		config := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13, NextProtos: []string{cert.PeerProtocol}}
		if s.pair != nil {
			config.Certificates = []tls.Certificate{*s.pair}
		}
		raw, err := a.dialTCP(port, address{7, 1})
		if err != nil {
			c.got("the port between nodes can't be reached, so this shows nothing: %v", err)
			continue
		}
		conn := tls.Client(raw, config)
		_ = conn.SetDeadline(time.Now().Add(peerWait))
		frame := binary.BigEndian.AppendUint32(nil, 3)
		_, _ = conn.Write(append(frame, byte(kind), 0, 0))
		got, err := io.ReadAll(conn) // the handshake's error, if the port refuses the certificate there
		if len(got) > 0 || isTimeout(err) {
			c.got("the port between nodes with the certificate of %s, stream %c: %.80q, %v", s.what, kind, got, err)
		}
		_ = conn.NetConn().Close()
	}
}

// peerMethods are requests between nodes, of all packages that serve them.
var peerMethods = []string{
	"meta.propose", "meta.index", "meta.key.new", "meta.key.revoke", "group.point", "shard.search", "shard.entries", "shard.register", "shard.events", "shard.purge", "job.page",
	"node.status", "node.replica", "node.sum", "node.diverged", "node.demote", "node.ring", "node.rotate", "node.certificates", "node.part", "node.propose", "node.sums",
	"node.heard", "node.wanted", "node.founders",
}

// intruder is a port between nodes without a node.
type intruder struct {
	*transport.Mux
	client *transport.Client
}

// intrude opens an intruder with the certificate of a node.
func (a intrusion) intrude(name string) (*intruder, error) {
	at := a.certificate(name + "/node")
	source, err := cert.Load(cert.Files{CA: a.info.CAFile, Cert: at + ".pem", Key: at + ".key"}, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	mux, err := transport.Open(a.ctx, transport.Config{Network: transport.OS{}, Addr: "127.0.0.1:0", TLS: source.PeerConfig(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	return &intruder{mux, transport.OpenClient(mux)}, nil
}

func (i *intruder) close() error { return errors.Join(i.client.Close(), i.Close()) }

// call makes an internal request with the body {1: 0, 2: {}} (CBOR).
func (i *intruder) call(ctx context.Context, port, method string) (answer []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, peerWait)
	defer cancel()
	answer, err = i.client.Call(ctx, port, method, []byte{0xa2, 0x01, 0x00, 0x02, 0xa0})
	if remote, ok := errors.AsType[*transport.RemoteError](err); ok && remote.Payload != nil {
		err = calls.DecodeFault(remote.Payload)
	}
	return answer, err
}

// removedNode uses the certificates of the node that was removed before the attacks, and
// starts that node again.
func (a intrusion) removedNode(c *tally) error {
	peers, admins, err := a.ports()
	if err != nil {
		return err
	}
	if err := a.sound(peers); err != nil {
		return err
	}
	i, err := a.intrude("n4")
	if err != nil {
		return err
	}
	for n, port := range peers {
		for _, method := range peerMethods {
			c.try()
			if answer, err := i.call(a.ctx, port, method); err == nil || router.KindOf(err) != router.Forbidden && !errors.Is(err, transport.ErrNotSent) && !errors.Is(err, transport.ErrOutcomeUnknown) {
				c.got("the removed node asks node %d for %s: %.80q, %v", n+1, method, answer, err)
			}
		}
		for _, kind := range []transport.Kind{transport.KindRaft, transport.KindGossip} {
			c.try()
			conn, err := i.Dial(a.ctx, kind, id.Meta, port)
			if err != nil {
				continue
			}
			_ = conn.SetReadDeadline(time.Now().Add(peerWait))
			got, err := io.ReadAll(conn)
			if len(got) > 0 || isTimeout(err) {
				c.got("node %d keeps a stream %c of the removed one: %q, %v", n+1, kind, got, err)
			}
			_ = conn.Close()
		}
		c.try()
		other := (n + 1) % nodes
		i.Reroute(peers[other], transport.Route{Through: port, To: a.info.Nodes[other].ID})
		if conn, err := i.Dial(a.ctx, transport.KindPeer, 0, peers[other]); err == nil {
			c.got("node %d relays a stream of the removed node", n+1)
			_ = conn.Close()
		}
		i.Reroute(peers[other], transport.Route{})
	}
	if err := i.close(); err != nil {
		return err
	}
	for _, name := range []string{"n4/node", "n4/status", "n4/server"} {
		pair, err := tls.LoadX509KeyPair(a.certificate(name)+".pem", a.certificate(name)+".key")
		if err != nil {
			return err
		}
		for _, port := range admins {
			a.order(c, port, shown{what: "the removed node, " + name, pair: &pair})
		}
	}
	return a.comeBack(c)
}

// sound checks that a node which was not removed gets answers: or no refusal would prove
// anything.
func (a intrusion) sound(peers []string) error {
	i, err := a.intrude("n1")
	if err != nil {
		return err
	}
	var unsound []error
	for _, port := range peers[1:] { // the first is this node's own
		_, err := i.call(a.ctx, port, "meta.index")
		if router.KindOf(err) == router.Forbidden || errors.Is(err, transport.ErrNotSent) || errors.Is(err, transport.ErrOutcomeUnknown) {
			unsound = append(unsound, fmt.Errorf("a node with a record gets no answer: %w", err))
		}
	}
	return errors.Join(append(unsound, i.close())...)
}

// comeBack starts the removed node's process again: it must end.
func (a intrusion) comeBack(c *tally) error {
	c.try()
	gone := a.info.Nodes[nodes]
	file := filepath.Join(gone.Dir, "node.pid")
	if _, running := process.Holder(file); !running {
		if err := a.Restart(gone.Name); err != nil {
			return err
		}
		time.Sleep(time.Second)
	}
	for late := time.Now().Add(endWait); ; time.Sleep(settlePause) {
		if _, running := process.Holder(file); !running {
			break
		}
		if time.Now().After(late) {
			c.got("the removed node runs on")
			return nil
		}
	}
	log, err := os.ReadFile(gone.Log)
	if err == nil && !bytes.Contains(log, []byte("was removed from its cluster")) {
		c.got("the removed node has ended for another reason: see %s", gone.Log)
	}
	return err
}
