package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"facet/internal/id"
	"facet/internal/must"
	"facet/node/cert"
	"facet/node/transport/memnet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func nodeID(n byte) id.Node { return id.Node{UUID: id.Random([16]byte{n})} }

func newCA(t testing.TB, name string) *cert.CA {
	t.Helper()
	ca, err := cert.NewCA(name)
	must.Do(t, err)
	return ca
}

// nodeTLS issues a certificate for node n.
func nodeTLS(t testing.TB, ca *cert.CA, n byte) *tls.Config {
	t.Helper()
	dir := t.TempDir()
	files := cert.Files{CA: filepath.Join(dir, "ca.pem"), Cert: filepath.Join(dir, "n.pem"), Key: filepath.Join(dir, "n.key")}
	if _, err := cert.Ensure(files, ca, func() (cert.Pair, error) { return ca.IssueNode(nodeID(n), nil) }); err != nil {
		t.Fatal(err)
	}
	s, err := cert.Load(files, slog.New(slog.DiscardHandler))
	must.Do(t, err)
	return s.PeerConfig()
}

func openMux(t testing.TB, network Network, address string, config *tls.Config) *Mux {
	t.Helper()
	m, err := Open(t.Context(), Config{Network: network, Addr: address, TLS: config, Log: slog.New(slog.DiscardHandler)})
	must.Do(t, err)
	return m
}

func closeAll(t testing.TB, closers ...io.Closer) {
	t.Helper()
	for _, c := range closers {
		if err := c.Close(); err != nil {
			t.Errorf("close %T: %v", c, err)
		}
	}
}

// both runs f on loopback and in virtual time. Its nodes share ca.
func both(t *testing.T, f func(t *testing.T, network func(n byte) Network, address string)) {
	t.Helper()
	t.Run("loopback", func(t *testing.T) {
		t.Parallel()
		f(t, func(byte) Network { return OS{} }, "127.0.0.1:0")
	})
	t.Run("virtual", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			n := memnet.New(1)
			f(t, func(i byte) Network { return n.Host(fmt.Sprintf("10.0.0.%d", i)) }, ":0")
		})
	})
}

// expect reads from c and wants this text.
func expect(t *testing.T, c net.Conn, want string) {
	t.Helper()
	b := make([]byte, len(want))
	if _, err := io.ReadFull(c, b); err != nil || string(b) != want {
		t.Errorf("got %q %v, want %q", b, err, want)
	}
}

// say accepts the next stream of s in the background and writes text to it.
func say(t *testing.T, s *Stream, text string) (wait func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := s.Accept()
		if err != nil {
			t.Errorf("accept for %q: %v", text, err)
			return
		}
		defer c.Close()
		if _, err := io.WriteString(c, text); err != nil {
			t.Errorf("write %q: %v", text, err)
		}
	}()
	return func() { <-done }
}

func TestStreamReachesItsRegistration(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, network func(byte) Network, address string) {
		ca := newCA(t, "one")
		a := openMux(t, network(1), address, nodeTLS(t, ca, 1))
		b := openMux(t, network(2), address, nodeTLS(t, ca, 2))
		defer closeAll(t, a, b)
		type registration struct {
			kind  Kind
			shard id.Shard
			open  func() (*Stream, error)
		}
		all := []registration{{KindPeer, 0, b.Peers}, {KindGossip, 0, b.Gossip}}
		for _, shard := range []id.Shard{id.Meta, 1, 300, id.MaxShard} {
			all = append(all, registration{KindRaft, shard, func() (*Stream, error) { return b.Group(shard) }})
		}
		var waits []func()
		for _, r := range all {
			s, err := r.open()
			must.Do(t, err)
			if _, err := r.open(); err == nil {
				t.Errorf("%c %d was registered twice", r.kind, r.shard)
			}
			waits = append(waits, say(t, s, fmt.Sprintf("%c %d", r.kind, r.shard)))
		}
		for _, r := range all {
			c, err := a.Dial(t.Context(), r.kind, r.shard, b.Advertise())
			must.Do(t, err)
			expect(t, c, fmt.Sprintf("%c %d", r.kind, r.shard))
			if c.Node() != nodeID(2) {
				t.Errorf("far end: got %v, want node 2", c.Node())
			}
			_ = c.Close()
		}
		for _, wait := range waits {
			wait()
		}
	})
}

func TestGroupRegistersLateOrAgain(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, network func(byte) Network, address string) {
		ca := newCA(t, "one")
		a := openMux(t, network(1), address, nodeTLS(t, ca, 1))
		b := openMux(t, network(2), address, nodeTLS(t, ca, 2))
		defer closeAll(t, a, b)
		from, err := a.Group(5)
		must.Do(t, err)
		for round := range 3 {
			c, err := from.Dial(t.Context(), b.Advertise())
			must.Do(t, err)
			if _, err := c.Read(make([]byte, 1)); err == nil {
				t.Error("a stream for nobody stays open")
			}
			_ = c.Close()
			s, err := b.Group(5)
			must.Do(t, err)
			wait := say(t, s, "hello")
			if c, err = from.Dial(t.Context(), b.Advertise()); err != nil {
				t.Fatal(err)
			}
			expect(t, c, "hello")
			wait()
			accepted := make(chan error, 1)
			go func() { _, err := s.Accept(); accepted <- err }()
			closeAll(t, s, s)
			if err := <-accepted; !errors.Is(err, net.ErrClosed) {
				t.Errorf("round %d: accept after close: got %v", round, err)
			}
			_ = c.Close()
		}
	})
}

func TestClosedGroupEndsItsStreams(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ca, n := newCA(t, "one"), memnet.New(1)
		a := openMux(t, n.Host("10.0.0.1"), ":7000", nodeTLS(t, ca, 1))
		b := openMux(t, n.Host("10.0.0.2"), ":7000", nodeTLS(t, ca, 2))
		defer closeAll(t, a, b)
		var streams []*Stream
		var conns []net.Conn
		for shard := range id.Shard(2) {
			s, err := b.Group(shard)
			must.Do(t, err)
			streams = append(streams, s)
			for range 2 { // one of them waits for Accept
				c, err := a.Dial(t.Context(), KindRaft, shard, b.Advertise())
				must.Do(t, err)
				conns = append(conns, c)
			}
			if _, err := s.Accept(); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		closeAll(t, streams[0])
		for i, c := range conns {
			_ = c.SetReadDeadline(time.Now().Add(time.Second))
			_, err := c.Read(make([]byte, 1))
			var late net.Error
			if timedOut := errors.As(err, &late) && late.Timeout(); timedOut != (i >= 2) {
				t.Errorf("stream %d: got %v", i, err)
			}
			_ = c.Close()
		}
	})
}

func TestStrangerReachesNoNode(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, network func(byte) Network, address string) {
		ca := newCA(t, "one")
		m := openMux(t, network(1), address, nodeTLS(t, ca, 1))
		defer closeAll(t, m)
		s, err := m.Peers()
		must.Do(t, err)
		go func() {
			if c, err := s.Accept(); err == nil {
				t.Errorf("accepted %v", c.(*Conn).Node())
			}
		}()
		for name, config := range map[string]*tls.Config{
			"another authority": nodeTLS(t, newCA(t, "one"), 2),
			"another cluster":   nodeTLS(t, newCA(t, "two"), 2),
			"no certificate":    {InsecureSkipVerify: true, NextProtos: []string{cert.PeerProtocol}},
			"another protocol":  {InsecureSkipVerify: true, NextProtos: []string{"h2"}},
		} {
			raw, err := network(2).Dial(t.Context(), m.Advertise())
			must.Do(t, err)
			config.VerifyConnection = nil // it accepts any server
			c := tls.Client(raw, config)
			_, _ = c.Write([]byte{'P', 0, 0})
			if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: got %v, want a refusal", name, err)
			}
			_ = raw.Close()
			if config.GetCertificate == nil {
				continue
			}
			stranger := openMux(t, network(3), address, config)
			if _, err := m.Dial(t.Context(), KindPeer, 0, stranger.Advertise()); !errors.Is(err, cert.ErrStranger) {
				t.Errorf("%s: dialled it: got %v, want ErrStranger", name, err)
			}
			closeAll(t, stranger)
		}
	})
}

// held returns the connections and handshakes that m counts.
func held(m *Mux) (conns, handshakes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.conns), len(m.handshakes)
}

// A connection that sends rubbish is closed too.
func TestSilentConnectionIsClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ca, n := newCA(t, "one"), memnet.New(1)
		m := openMux(t, n.Host("10.0.0.1"), ":7000", nodeTLS(t, ca, 1))
		b := openMux(t, n.Host("10.0.0.2"), ":7000", nodeTLS(t, ca, 2))
		defer closeAll(t, m, b)
		evil := n.Host("10.0.0.66")
		for i := range 2 * handshakesMax {
			raw, err := evil.Dial(t.Context(), m.Advertise())
			must.Do(t, err)
			defer raw.Close()
			switch i % 3 {
			case 1:
				_, _ = io.WriteString(raw, "GET / HTTP/1.1\r\n\r\n")
			case 2:
				_, _ = raw.Write([]byte{22, 3, 1, 0x40, 0}) // a long record that never comes
			}
		}
		// Whole handshakes without a first frame, or with rubbish.
		for i := range 4 {
			raw, err := n.Host("10.0.0.2").Dial(t.Context(), m.Advertise())
			must.Do(t, err)
			defer raw.Close()
			c := tls.Client(raw, b.tls)
			if i%2 == 1 {
				_, _ = c.Write([]byte{'X', 1, 1})
			} else {
				go func() { _ = c.Handshake() }()
			}
		}
		synctest.Wait()
		if conns, handshakes := held(m); handshakes > handshakesMax || conns > handshakesMax {
			t.Errorf("%d connections, %d handshakes, want at most %d", conns, handshakes, handshakesMax)
		}
		s, err := m.Peers()
		must.Do(t, err)
		wait := say(t, s, "open")
		c, err := b.Dial(t.Context(), KindPeer, 0, m.Advertise())
		if err != nil {
			t.Fatalf("a good node among all that: %v", err)
		}
		expect(t, c, "open")
		wait()
		_ = c.Close()
		time.Sleep(handshakeTimeout + time.Millisecond)
		synctest.Wait()
		if conns, handshakes := held(m); conns != 0 || handshakes != 0 {
			t.Errorf("after the timeout: %d connections, %d handshakes", conns, handshakes)
		}
	})
}

func TestUnacceptedStreamIsClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ca, n := newCA(t, "one"), memnet.New(1)
		a := openMux(t, n.Host("10.0.0.1"), ":7000", nodeTLS(t, ca, 1))
		b := openMux(t, n.Host("10.0.0.2"), ":7000", nodeTLS(t, ca, 2))
		defer closeAll(t, a, b)
		if _, err := b.Peers(); err != nil {
			t.Fatal(err)
		}
		for range backlogMax + 3 {
			c, err := a.Dial(t.Context(), KindPeer, 0, b.Advertise())
			must.Do(t, err)
			defer c.Close()
		}
		synctest.Wait()
		if conns, _ := held(b); conns != backlogMax+3 {
			t.Errorf("at once: %d connections, want %d", conns, backlogMax+3)
		}
		time.Sleep(handoverTimeout + time.Millisecond)
		synctest.Wait()
		if conns, handshakes := held(b); conns != backlogMax || handshakes != 0 {
			t.Errorf("later: %d connections, %d handshakes, want %d and 0", conns, handshakes, backlogMax)
		}
	})
}

func TestDialEndsWithContextOrMux(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ca, n := newCA(t, "one"), memnet.New(1)
		a := openMux(t, n.Host("10.0.0.1"), ":7000", nodeTLS(t, ca, 1))
		n.Host("10.0.0.2")
		n.Isolate("10.0.0.2")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		if _, err := a.Dial(ctx, KindPeer, 0, "10.0.0.2:7000"); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != time.Second {
			t.Errorf("got %v after %v", err, time.Since(begin))
		}
		if _, err := a.Dial(t.Context(), KindPeer, 0, "10.0.0.2:7000"); err == nil || time.Since(begin) != time.Second+handshakeTimeout {
			t.Errorf("without a deadline: got %v after %v", err, time.Since(begin))
		}
		time.AfterFunc(time.Second, func() { closeAll(t, a) })
		begin = time.Now()
		if _, err := a.Dial(t.Context(), KindPeer, 0, "10.0.0.2:7000"); err == nil || time.Since(begin) != time.Second {
			t.Errorf("closed meanwhile: got %v after %v", err, time.Since(begin))
		}
		if _, err := a.Group(1); !errors.Is(err, net.ErrClosed) {
			t.Errorf("register after close: got %v", err)
		}
	})
}

func TestRefusedNodeGetsNoStream(t *testing.T) {
	t.Parallel()
	ca := newCA(t, "one")
	open := func(n byte, refuse func(id.Node, *x509.Certificate) error) *Mux {
		m, err := Open(t.Context(), Config{
			Network: OS{}, Addr: "127.0.0.1:0", TLS: nodeTLS(t, ca, n), Refuse: refuse, Log: slog.New(slog.DiscardHandler),
		})
		must.Do(t, err)
		return m
	}
	var refusal atomic.Pointer[error]
	refusal.Store(new(error))
	a := open(1, func(node id.Node, _ *x509.Certificate) error {
		if node != nodeID(2) {
			return errors.New("another node is asked about")
		}
		return *refusal.Load()
	})
	b := open(2, nil)
	defer closeAll(t, a, b)
	peers, err := a.Peers()
	must.Do(t, err)
	server := OpenServer(ServerConfig{Listener: peers, Log: slog.New(slog.DiscardHandler), Handler: func(context.Context, string, []byte) ([]byte, error) {
		return []byte("removed"), nil
	}})
	defer closeAll(t, server)
	ended := func(c net.Conn) bool {
		_ = c.SetReadDeadline(time.Now().Add(2 * time.Second))
		_, err := c.Read(make([]byte, 1))
		return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
	}
	dial := func(from *Mux, kind Kind, to *Mux) net.Conn {
		t.Helper()
		c, err := from.Dial(t.Context(), kind, 0, to.Addr())
		must.Do(t, err)
		t.Cleanup(func() { c.Close() })
		return c
	}
	ask := func(c net.Conn) string {
		t.Helper()
		must.Do(t, writeRequest(c, request{number: 1, timeout: time.Second, method: "x"}))
		answer, err := readFrame(c, BodyBytesMax, func(int) error { return nil })
		must.Do(t, err)
		return string(answer)
	}
	if _, err := b.Gossip(); err != nil { // so that b keeps out open
		t.Fatal(err)
	}
	in, out := dial(b, KindPeer, a), dial(a, KindGossip, b)
	ask(in)
	ask(in)
	removed := fmt.Errorf("%w: in this test", ErrRemoved)
	refusal.Store(&removed)
	if n := a.Cut(func(node id.Node, leaf *x509.Certificate) bool { return node == nodeID(2) && leaf != nil }); n != 2 || !ended(in) || !ended(out) {
		t.Errorf("%d streams were cut", n)
	}
	if _, err := a.Dial(t.Context(), KindPeer, 0, b.Addr()); !errors.Is(err, ErrRemoved) {
		t.Errorf("a removed node was called: %v", err)
	}
	if !ended(dial(b, KindGossip, a)) {
		t.Error("a removed node has a stream of gossip")
	}
	once := dial(b, KindPeer, a)
	if answer := ask(once); !strings.HasSuffix(answer, "removed") {
		t.Errorf("it is told %q", answer)
	}
	if !ended(once) {
		t.Error("it may ask a second time")
	}
}
