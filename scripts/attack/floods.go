package main

import (
	"context"
	"crypto/tls"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"facet/node/wire"
	"facet/scripts/bench/machine"
)

const (
	idleConnections = 2300 // from one address
	perAddress      = 2048 // the most that a node keeps
	dialsAtOnce     = 64
	// idleWait is the longest time in which a node closes the connections that are too many.
	// It gives the others 5 s for the handshake.
	idleWait  = 4 * time.Second
	idlePause = 200 * time.Millisecond

	silentAdmins = 64 // connections to an admin port, as many as an address may have

	// Bodies that do not end: so many of each size, the largest first, so that the smaller ones fill what these leave.
	unprovenBodies = 45
	unprovenBytes  = 20 << 20
	unprovenRounds = 5

	// A key may ask a node for health healthBurst times at once and healthRate times a second.
	healthTries = 400
	healthBurst = 50
	healthRate  = 10

	slowClients = 250 // of each kind
	dripPause   = 400 * time.Millisecond
	// slowMost is the longest that a node may wait for headers, or for a body of 1 MiB.
	slowMost      = 14 * time.Second
	garbage       = 400 // connections for each port
	packets       = 6000
	packetMax     = 9000
	deafClients   = 40
	watchPause    = 100 * time.Millisecond
	watchMost     = 5 * time.Second
	floodMemoryMB = 1500
)

// floods sends more, slower or other things than clients send.
type floods struct{ *attack }

// flood sends more, slower or other things than clients send. Meanwhile a good client is
// served, and afterwards the nodes have closed what they had to.
func (a floods) flood(c *tally) error {
	peers, admins, err := a.ports()
	if err != nil {
		return err
	}
	before, err := machine.Resident(a.pids()...)
	if err != nil {
		return err
	}
	u, err := machine.Watch(func() error {
		stop := make(chan struct{})
		var watching, work sync.WaitGroup
		var times [nodes][]time.Duration
		for node := range nodes {
			watching.Go(func() { times[node] = a.watch(c, node, stop) })
		}
		work.Go(func() { a.idle(c) })
		work.Go(func() { a.silent(c, admins[0]) })
		work.Go(func() { a.health(c) })
		work.Go(func() { a.unproven(c) })
		work.Go(func() {
			a.slow(c, "headers", func(int) []byte { return []byte("POST /v1.1/face/search HTTP/1.1\r\nX-Slow: ") })
		})
		work.Go(func() { a.slow(c, "a body", a.halfRequest) })
		work.Go(func() {
			a.slow(c, "an unsigned body", func(int) []byte {
				return []byte("POST /v1.1/face/search HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n")
			})
		})
		work.Go(func() { a.deaf(c) })
		for _, ports := range [][]string{a.hosts, peers, admins} {
			work.Go(func() { a.noise(c, ports) })
		}
		work.Go(func() { a.gossip(c, peers) })
		work.Wait()
		close(stop)
		watching.Wait()
		all := slices.Sorted(slices.Values(slices.Concat(times[:]...)))
		c.note("a good client meanwhile: %d requests, p50 %s, p99 %s", len(all), short(at(all, .5)), short(at(all, .99)))
		return nil
	}, a.pids()...)
	if err != nil {
		return err
	}
	c.note("memory of all nodes: %.0f MB before, at most %.0f MB", before, u.MostMB)
	if u.MostMB-before > floodMemoryMB {
		c.got("floods took %.0f MB", u.MostMB-before)
	}
	return nil
}

// watch makes requests of a good client until stop, and returns their times.
func (a floods) watch(c *tally, node int, stop <-chan struct{}) (times []time.Duration) {
	l := line{target: a.target, node: node, from: address{0, 9}}
	defer l.close()
	for {
		select {
		case <-stop:
			return times
		case <-time.After(watchPause):
		}
		got, err := l.do(a.sign(node, a.victim.only, http.MethodGet, "/v1.1/tags", nil, apiKey(a.victim.gallery.apiKey)).raw())
		if err != nil || got.status != http.StatusOK || got.took > watchMost {
			c.got("a good client at node %d: %s after %v, %v", node, got, got.took, err)
		}
		times = append(times, got.took)
	}
}

// idle opens more connections than an address may have. Another address is served.
func (a floods) idle(c *tally) {
	open := make([]net.Conn, idleConnections)
	each(len(open), dialsAtOnce, func(i int) {
		c.try()
		conn, err := a.dialTCP(a.hosts[0], address{6, 1})
		if err == nil {
			open[i] = conn
		}
	})
	if made := len(slices.DeleteFunc(slices.Clone(open), func(conn net.Conn) bool { return conn == nil })); made <= perAddress {
		c.got("only %d idle connections were opened, so this shows nothing", made)
	}
	left := keptOpen(open)
	for late := time.Now().Add(idleWait); left > perAddress && time.Now().Before(late); left = keptOpen(open) {
		time.Sleep(idlePause)
	}
	for _, conn := range open {
		if conn != nil {
			_ = conn.Close()
		}
	}
	c.note("of %d idle connections from one address, %d stayed open", len(open), left)
	if left > perAddress {
		c.got("%d connections of one address stayed open, want at most %d", left, perAddress)
	}
}

// silent takes all connections to an admin port that an address may have. The address is served
// nevertheless.
func (a floods) silent(c *tally, admin string) {
	from := address{6, 50}
	for range silentAdmins {
		c.try()
		conn, err := a.dialTCP(admin, from)
		if err != nil {
			c.got("a silent connection to an admin port: %v, so this shows nothing", err)
			return
		}
		defer conn.Close()
	}
	client := http.Client{Timeout: watchMost, Transport: &http.Transport{
		DialContext:     func(context.Context, string, string) (net.Conn, error) { return a.dialTCP(admin, from) },
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
	}}
	answer, err := client.Get("https://" + admin + wire.PathReady)
	if err != nil {
		c.got("an admin port beside %d silent connections: %v", silentAdmins, err)
		return
	}
	_ = answer.Body.Close()
}

// health asks a node for health as fast as it can, with the key that may do the least. The node answers no more
// than it promises.
func (a floods) health(c *tally) {
	l := line{target: a.target, from: address{6, 51}}
	defer l.close()
	served, began := 0, time.Now()
	for range healthTries {
		c.try()
		got, err := l.do(a.sign(0, a.thief.only, http.MethodGet, "/v1.1/health", nil).raw())
		switch {
		case err != nil:
			c.got("health: %v", err)
			return
		case got.status == http.StatusOK:
			served++
		case got.status != http.StatusTooManyRequests:
			c.got("health: %s", got)
		}
	}
	if most := healthBurst + int(healthRate*time.Since(began).Seconds()) + 1; served > most {
		c.got("health was answered %d times, want at most %d", served, most)
	}
}

// unproven sends bodies that do not end, with the id of the victim's key and a wrong signature, until its node takes no
// more. The victim's photos are taken nevertheless.
func (a floods) unproven(c *tally) {
	v, from := a.victim, address{6, 52}
	raw := a.sign(0, credentialsOf(v.only.Signer.AccessKey, "wrong"), http.MethodPost, "/v1.1/face/search", strings.Repeat("A", unprovenBytes), apiKey(v.gallery.apiKey)).raw()
	var bodies sync.WaitGroup
	defer bodies.Wait() // they end when the node has ended all bodies
	for round := range unprovenRounds {
		part := raw[:unprovenBytes*3/4>>(2*round)]
		var sent sync.WaitGroup
		sent.Add(unprovenBodies)
		for range unprovenBodies {
			bodies.Go(func() {
				c.try()
				conn, err := a.dial(0, from)
				if err == nil {
					defer func() { _ = conn.NetConn().Close() }()
					_ = conn.SetDeadline(time.Now().Add(2 * slowMost))
					_, _ = conn.Write(part) // or it was refused
				}
				sent.Done()
				if err == nil {
					_, _ = io.ReadAll(conn)
				}
			})
		}
		sent.Wait()
	}
	photo := map[string]any{"probe": encoded(a.photos[another])}
	for range unprovenRounds {
		got, err := a.send(0, address{0, 9}, a.sign(0, v.only, http.MethodPost, "/v1.1/face/search", photo, apiKey(v.gallery.apiKey)))
		if err != nil || got.status != http.StatusOK {
			c.got("a photo beside bodies without a right signature: %s, %v", got, err)
		}
	}
}

// keptOpen returns how many of the connections the other end has not closed.
func keptOpen(list []net.Conn) int {
	var n atomic.Int64
	each(len(list), dialsAtOnce, func(i int) {
		if list[i] != nil && isOpen(list[i]) {
			n.Add(1)
		}
	})
	return int(n.Load())
}

// isOpen reports whether the other end has not closed a connection.
func isOpen(c net.Conn) bool {
	_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := c.Read(make([]byte, 1))
	return isTimeout(err)
}

// halfRequest returns a signed request with a body of 1 MB, whose body is missing.
func (a floods) halfRequest(i int) []byte {
	body := `{"probe":"` + strings.Repeat("A", 1<<20) + `"}`
	raw := a.sign(i%nodes, a.victim.only, http.MethodPost, "/v1.1/face/search", body, apiKey(a.victim.gallery.apiKey)).raw()
	return raw[:len(raw)-1<<20]
}

// slow sends the beginning of a request and then a byte now and then. The node must end
// it in time.
func (a floods) slow(c *tally, what string, begin func(i int) []byte) {
	var work sync.WaitGroup
	var opened atomic.Int64
	slots := make(chan struct{}, 16)
	for i := range slowClients {
		slots <- struct{}{}
		work.Go(func() {
			c.try()
			conn, err := a.dial(i%nodes, address{6, byte(2 + i%8)})
			<-slots
			if err != nil {
				return // refused
			}
			opened.Add(1)
			defer func() { _ = conn.NetConn().Close() }()
			began := time.Now()
			if _, err := conn.Write(begin(i)); err != nil {
				return
			}
			go func() { // ends with the connection
				for {
					time.Sleep(dripPause)
					if _, err := conn.Write([]byte("A")); err != nil {
						return
					}
				}
			}()
			_ = conn.SetReadDeadline(time.Now().Add(2 * slowMost))
			answer, err := io.ReadAll(conn)
			if took := time.Since(began); took > slowMost {
				c.got("slow %s: open for %v, %.60q %v", what, took, answer, err)
			}
		})
	}
	work.Wait()
	if opened.Load() < slowClients/2 {
		c.got("slow %s: only %d of %d connections were opened, so this shows nothing", what, opened.Load(), slowClients)
	}
}

// deaf sends requests and never reads the answers.
func (a floods) deaf(c *tally) {
	ask := strings.Repeat("GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n", 20)
	each(deafClients, deafClients, func(i int) {
		c.try()
		conn, err := a.dial(i%nodes, address{6, 20})
		if err != nil {
			return
		}
		defer func() { _ = conn.NetConn().Close() }()
		_ = conn.SetDeadline(time.Now().Add(8 * time.Second))
		for range 1000 {
			if _, err := io.WriteString(conn, ask); err != nil {
				return
			}
		}
	})
}

// noise sends bytes that are no protocol to TCP ports, and handshakes that stop.
func (a floods) noise(c *tally, ports []string) {
	r := rand.New(rand.NewPCG(a.seed, 3))
	pieces := make([][]byte, garbage)
	for i := range pieces {
		b := make([]byte, r.IntN(3000))
		for k := range b {
			b[k] = byte(r.Uint32())
		}
		heads := []string{"", "GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\xff\xff\x01", "\x16\x03\x01\x00\x05\x01\x00\x00\x01\x03", "\x16\x03\x03\x40\x01", "\x15\x03\x01\x00\x02\x02\x28", "\x80\x2e\x01\x00\x02", "SSH-2.0-x\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"}
		pieces[i] = append([]byte(heads[i%len(heads)]), b...)
	}
	each(len(pieces), 8, func(i int) {
		c.try()
		conn, err := a.dialTCP(ports[i%len(ports)], address{6, 30})
		if err != nil {
			return
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(300 * time.Millisecond))
		if i%5 == 0 { // inside TLS, without a certificate
			inner := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"facet-peer/1", "http/1.1"}})
			_, _ = inner.Write(pieces[i])
			_, _ = io.ReadAll(inner)
			return
		}
		_, _ = conn.Write(pieces[i])
		_, _ = io.ReadAll(conn)
	})
}

// gossip sends packets that are no gossip.
func (a floods) gossip(c *tally, ports []string) {
	r := rand.New(rand.NewPCG(a.seed, 4))
	var sockets []net.Conn
	for i := range 8 {
		d := net.Dialer{LocalAddr: &net.UDPAddr{IP: address{6, byte(40 + i)}.ip()}}
		s, err := d.Dial("udp", ports[i%len(ports)])
		if err != nil {
			continue
		}
		defer s.Close()
		sockets = append(sockets, s)
	}
	for i := range packets {
		b := make([]byte, r.IntN(packetMax))
		for k := range min(len(b), 64) {
			b[k] = byte(r.Uint32())
		}
		if i%3 == 0 && len(b) > 0 {
			b[0] = byte(i % 16) // memberlist's kinds of messages
		}
		c.try()
		_, _ = sockets[i%len(sockets)].Write(b) // a full buffer loses it
		if i%100 == 0 {
			time.Sleep(10 * time.Millisecond)
		}
	}
}
