package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"facet/internal/must"
	"facet/node/transport/memnet"
)

// codedError is an error of a handler that travels as bytes.
type codedError struct{ code byte }

func (e codedError) Error() string     { return fmt.Sprintf("code %d", e.code) }
func (e codedError) PeerError() []byte { return []byte{e.code} }

// pair is a client on node 1 and a server on node 2.
type pair struct {
	a, b    *Mux
	client  *Client
	server  *Server
	handler atomic.Pointer[Handler]
}

func (p *pair) handle(h Handler) { p.handler.Store(&h) }

func (p *pair) call(ctx context.Context, method, body string) (string, error) {
	b, err := p.client.Call(ctx, p.b.Advertise(), method, []byte(body))
	return string(b), err
}

func (p *pair) close(t testing.TB) {
	t.Helper()
	closeAll(t, p.client, p.server, p.a, p.b)
}

func newPair(t testing.TB, network func(byte) Network, address string) *pair {
	t.Helper()
	ca := newCA(t, "one")
	p := &pair{a: openMux(t, network(1), address, nodeTLS(t, ca, 1)), b: openMux(t, network(2), address, nodeTLS(t, ca, 2))}
	p.client = OpenClient(p.a)
	p.serve(t)
	return p
}

func (p *pair) serve(t testing.TB) {
	t.Helper()
	s, err := p.b.Peers()
	must.Do(t, err)
	p.server = OpenServer(ServerConfig{
		Listener: s, Log: slog.New(slog.DiscardHandler),
		Handler: func(ctx context.Context, method string, body []byte) ([]byte, error) {
			return (*p.handler.Load())(ctx, method, body)
		},
	})
}

// virtual runs f in virtual time with node 1 at 10.0.0.1 and node 2 at 10.0.0.2.
func virtual(t *testing.T, f func(t *testing.T, n *memnet.Network, p *pair)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(1)
		p := newPair(t, func(i byte) Network { return n.Host(fmt.Sprintf("10.0.0.%d", i)) }, ":7000")
		f(t, n, p)
		p.close(t)
	})
}

func echo(_ context.Context, method string, body []byte) ([]byte, error) {
	return append([]byte(method+":"), body...), nil
}

func TestCallReturnsTheHandlersResult(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, network func(byte) Network, address string) {
		p := newPair(t, network, address)
		defer p.close(t)
		p.handle(func(ctx context.Context, method string, body []byte) ([]byte, error) {
			if n, ok := Caller(ctx); !ok || n != nodeID(1) {
				t.Errorf("caller: got %v %v, want node 1", n, ok)
			}
			return echo(ctx, method, body)
		})
		for _, size := range []int{0, 1, inlineBytesMax, inlineBytesMax + 1, 1 << 20} {
			body := strings.Repeat("x", size)
			if got, err := p.call(t.Context(), "echo", body); err != nil || got != "echo:"+body {
				t.Errorf("%d bytes: got %d bytes, %v", size, len(got), err)
			}
		}
	})
}

// A body of exactly the bound passes.
func TestLargeBodyIsNotSent(t *testing.T) {
	t.Parallel()
	p := newPair(t, func(byte) Network { return OS{} }, "127.0.0.1:0")
	defer p.close(t)
	p.handle(func(_ context.Context, method string, body []byte) ([]byte, error) {
		if method == "more" {
			return make([]byte, BodyBytesMax+1), nil
		}
		return body, nil
	})
	body := bytes.Repeat([]byte("0123456789abcdef"), BodyBytesMax/16)
	if got, err := p.client.Call(t.Context(), p.b.Advertise(), "", body); err != nil || !bytes.Equal(got, body) {
		t.Errorf("largest body: got %d bytes, %v", len(got), err)
	}
	if _, err := p.client.Call(t.Context(), p.b.Advertise(), "", append(body, 0)); !errors.Is(err, ErrTooLarge) || !errors.Is(err, ErrNotSent) {
		t.Errorf("larger: got %v, want ErrTooLarge and ErrNotSent", err)
	}
	var remote *RemoteError
	if _, err := p.call(t.Context(), "more", ""); !errors.As(err, &remote) {
		t.Errorf("larger answer: got %v, want *RemoteError", err)
	}
}

func TestHandlerErrorComesBackTyped(t *testing.T) {
	virtual(t, func(t *testing.T, _ *memnet.Network, p *pair) {
		p.handle(func(_ context.Context, method string, _ []byte) ([]byte, error) {
			switch method {
			case "coded":
				return nil, fmt.Errorf("wrapped: %w", codedError{7})
			case "long":
				return nil, errors.New(strings.Repeat("e", 1<<20))
			case "panic":
				panic("on purpose")
			}
			return nil, errors.New("plain")
		})
		for method, want := range map[string]RemoteError{
			"coded": {Message: "wrapped: code 7", Payload: []byte{7}},
			"plain": {Message: "plain"},
			"long":  {Message: strings.Repeat("e", messageBytesMax)},
			"panic": {Message: "handle panic: panic"},
		} {
			_, err := p.call(t.Context(), method, "")
			var got *RemoteError
			if !errors.As(err, &got) || got.Message != want.Message || !bytes.Equal(got.Payload, want.Payload) {
				t.Errorf("%s: got %.80v, want %.80v", method, err, want)
			}
			if errors.Is(err, ErrNotSent) || errors.Is(err, ErrOutcomeUnknown) {
				t.Errorf("%s: %v is also a failure of the connection", method, err)
			}
		}
	})
}

func TestHandlerGetsTheCallersDeadline(t *testing.T) {
	virtual(t, func(t *testing.T, _ *memnet.Network, p *pair) {
		var left time.Duration
		p.handle(func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
			deadline, _ := ctx.Deadline()
			left = time.Until(deadline)
			return nil, nil
		})
		for given, want := range map[time.Duration]time.Duration{
			1500 * time.Millisecond: 1500 * time.Millisecond,
			time.Hour:               requestTimeoutMax,
			0:                       callTimeout,
		} {
			ctx, cancel := t.Context(), context.CancelFunc(func() {})
			if given != 0 {
				ctx, cancel = context.WithTimeout(ctx, given)
			}
			if _, err := p.call(ctx, "", ""); err != nil || left != want {
				t.Errorf("deadline in %v: the handler had %v, want %v (%v)", given, left, want, err)
			}
			cancel()
		}
	})
}

// The call itself returns at once.
func TestCancelledCallEndsItsHandler(t *testing.T) {
	virtual(t, func(t *testing.T, _ *memnet.Network, p *pair) {
		ended := make(chan time.Duration, 1)
		p.handle(func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
			begin := time.Now()
			<-ctx.Done()
			ended <- time.Since(begin)
			return nil, ctx.Err()
		})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		begin := time.Now()
		_, err := p.call(ctx, "", "")
		if took := time.Since(begin); took != time.Second {
			t.Errorf("returned after %v, want 1s", took)
		}
		if !errors.Is(err, ErrOutcomeUnknown) || !errors.Is(err, context.Canceled) || errors.Is(err, ErrNotSent) {
			t.Errorf("got %v, want ErrOutcomeUnknown and context.Canceled", err)
		}
		if took := <-ended; took != time.Second {
			t.Errorf("the handler ended after %v, want 1s", took)
		}
		if _, err := p.call(ctx, "", ""); !errors.Is(err, ErrNotSent) || !errors.Is(err, context.Canceled) {
			t.Errorf("with a cancelled context: got %v, want ErrNotSent and context.Canceled", err)
		}
	})
}

// A caller sees from the error whether the request may have had its effect.
func TestUnsentIsNotUnknownOutcome(t *testing.T) {
	virtual(t, func(t *testing.T, n *memnet.Network, p *pair) {
		release := map[string]chan struct{}{"first": make(chan struct{}), "second": make(chan struct{})}
		p.handle(func(_ context.Context, method string, body []byte) ([]byte, error) {
			<-release[method]
			return body, nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.client.Call(ctx, "10.0.0.2:9", "", nil); !errors.Is(err, ErrNotSent) {
			t.Errorf("nobody listens: got %v, want ErrNotSent", err)
		}
		n.Isolate("10.0.0.2")
		if _, err := p.call(ctx, "", ""); !errors.Is(err, ErrNotSent) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("cut off before the first call: got %v, want ErrNotSent", err)
		}
		n.Heal()
		time.AfterFunc(time.Second, func() { n.Isolate("10.0.0.2") })
		ctx, cancel = context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if _, err := p.call(ctx, "first", ""); !errors.Is(err, ErrOutcomeUnknown) || errors.Is(err, ErrNotSent) {
			t.Errorf("cut off during the call: got %v, want ErrOutcomeUnknown", err)
		}
		n.Heal()
		close(release["first"])
		time.AfterFunc(time.Second, func() { // the other node's process ends
			for _, c := range p.b.accepted(func(*Conn) bool { return true }) {
				c.abort()
			}
			close(release["second"])
		})
		begin := time.Now()
		if _, err := p.call(t.Context(), "second", ""); !errors.Is(err, ErrOutcomeUnknown) || time.Since(begin) != time.Second {
			t.Errorf("the other node died: got %v after %v, want ErrOutcomeUnknown after 1s", err, time.Since(begin))
		}
	})
}

// Its request does not get through to the other node.
func TestBlockedCallEndsWithContext(t *testing.T) {
	virtual(t, func(t *testing.T, n *memnet.Network, p *pair) {
		p.handle(echo)
		if _, err := p.call(t.Context(), "", ""); err != nil {
			t.Fatal(err)
		}
		n.Set("10.0.0.1", "10.0.0.2", memnet.Link{Cut: true})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		_, err := p.call(ctx, "", strings.Repeat("x", 4<<20)) // more than the stream holds
		if took := time.Since(begin); took != time.Second || !errors.Is(err, ErrNotSent) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v after %v, want ErrNotSent after 1s", err, took)
		}
	})
}

func TestCallSurvivesServerRestart(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, network func(byte) Network, address string) {
		p := newPair(t, network, address)
		p.handle(echo)
		for round := range 5 {
			var wg sync.WaitGroup
			for range 8 { // eight connections
				wg.Go(func() {
					if _, err := p.call(t.Context(), "m", ""); err != nil {
						t.Errorf("round %d: %v", round, err)
					}
				})
			}
			wg.Wait()
			closeAll(t, p.server)
			p.serve(t)
			p.forget(t)
		}
		p.close(t)
	})
}

// forget waits until the client has noticed the ends of all its connections.
func (p *pair) forget(t testing.TB) {
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		p.client.mu.Lock()
		peers := len(p.client.peers)
		p.client.mu.Unlock()
		if peers == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the client has connections to %d addresses still", peers)
		}
	}
}

func TestManyCallsShareFewConnections(t *testing.T) {
	virtual(t, func(t *testing.T, _ *memnet.Network, p *pair) {
		var busy, most atomic.Int64
		p.handle(func(_ context.Context, _ string, body []byte) ([]byte, error) {
			if n := busy.Add(1); n > most.Load() {
				most.Store(n) // in virtual time no two goroutines race here
			}
			time.Sleep(10 * time.Millisecond)
			busy.Add(-1)
			return body, nil
		})
		var wg sync.WaitGroup
		begin := time.Now()
		for i := range 10 * peerConnsMax {
			wg.Go(func() {
				body := fmt.Sprint(i)
				if got, err := p.call(t.Context(), "", body); err != nil || got != body {
					t.Errorf("call %s: got %q %v", body, got, err)
				}
			})
		}
		wg.Wait()
		if took := time.Since(begin); took != 100*time.Millisecond || most.Load() > peerConnsMax {
			t.Errorf("took %v with %d at once, want 100ms with at most %d", took, most.Load(), peerConnsMax)
		}
		synctest.Wait()
		if conns, _ := held(p.b); conns > peerIdleMax {
			t.Errorf("%d connections stay, want at most %d", conns, peerIdleMax)
		}
		time.Sleep(clientIdleTimeout + time.Second)
		synctest.Wait()
		if conns, _ := held(p.b); conns != 0 || len(p.client.peers) != 0 {
			t.Errorf("after a minute: %d connections, %d peers", conns, len(p.client.peers))
		}
	})
}

func TestSurplusRequestIsRefused(t *testing.T) {
	virtual(t, func(t *testing.T, _ *memnet.Network, p *pair) {
		p.handle(echo)
		for range requestsMax {
			p.server.slots <- struct{}{}
		}
		if _, err := p.call(t.Context(), "", ""); !errors.Is(err, ErrNotSent) {
			t.Errorf("got %v, want ErrNotSent", err)
		}
		<-p.server.slots
		if _, err := p.call(t.Context(), "", ""); err != nil {
			t.Errorf("with one slot free: %v", err)
		}
	})
}

func TestClosingServerAnswersItsRequests(t *testing.T) {
	virtual(t, func(t *testing.T, _ *memnet.Network, p *pair) {
		p.handle(func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
			<-ctx.Done()
			time.Sleep(time.Second) // the handler finishes its work
			return []byte("done"), nil
		})
		time.AfterFunc(time.Second, func() { closeAll(t, p.server) })
		if got, err := p.call(t.Context(), "", ""); err != nil || got != "done" {
			t.Errorf("got %q %v, want done", got, err)
		}
	})
}

func TestClosedClientEndsItsCalls(t *testing.T) {
	virtual(t, func(t *testing.T, _ *memnet.Network, p *pair) {
		p.handle(func(ctx context.Context, _ string, _ []byte) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() })
		time.AfterFunc(time.Second, func() { closeAll(t, p.client) })
		begin := time.Now()
		if _, err := p.call(t.Context(), "", ""); !errors.Is(err, ErrOutcomeUnknown) || time.Since(begin) != time.Second {
			t.Errorf("got %v after %v, want ErrOutcomeUnknown after 1s", err, time.Since(begin))
		}
		if _, err := p.call(t.Context(), "", ""); !errors.Is(err, ErrNotSent) || !errors.Is(err, net.ErrClosed) {
			t.Errorf("after close: got %v, want ErrNotSent and net.ErrClosed", err)
		}
	})
}

// A connection on which a request arrives slowly is not closed as idle.
func TestSlowRequestIsNotIdle(t *testing.T) {
	virtual(t, func(t *testing.T, _ *memnet.Network, p *pair) {
		p.handle(echo)
		c, err := p.a.Dial(t.Context(), KindPeer, 0, p.b.Advertise())
		must.Do(t, err)
		defer c.Close()
		var frame bytes.Buffer
		must.Do(t, writeRequest(&frame, request{number: 1, timeout: time.Minute, method: "m", body: []byte("body")}))
		for _, half := range [][]byte{frame.Bytes()[:8], frame.Bytes()[8:]} {
			if _, err := c.Write(half); err != nil {
				t.Fatal(err)
			}
			time.Sleep(frameTimeout - time.Second) // longer than the wait for a first request
		}
		answer, err := readFrame(c, BodyBytesMax, nothing)
		if err != nil {
			t.Fatalf("read the answer: %v", err)
		}
		if got, err := parseAnswer(answer, 1); err != nil || string(got) != "m:body" {
			t.Errorf("got %q %v", got, err)
		}
	})
}

// The memory of the half is returned after frameTimeout.
func TestHalfARequestIsDropped(t *testing.T) {
	virtual(t, func(t *testing.T, _ *memnet.Network, p *pair) {
		p.handle(echo)
		for _, rubbish := range []string{"", "\x00", "\x00\x01\x00\x00half", "\xff\xff\xff\xff", "\x00\x00\x00\x01x"} {
			c, err := p.a.Dial(t.Context(), KindPeer, 0, p.b.Advertise())
			must.Do(t, err)
			defer c.Close()
			if _, err := c.Write([]byte(rubbish)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(max(frameTimeout, firstTimeout) + time.Second)
		synctest.Wait()
		if conns, _ := held(p.b); conns != 0 {
			t.Errorf("%d connections stay", conns)
		}
	})
}

func BenchmarkPeerCall1KiB(b *testing.B) {
	for _, parallel := range []int{1, 16} {
		b.Run(fmt.Sprintf("callers=%d", parallel), func(b *testing.B) {
			p := newPair(b, func(byte) Network { return OS{} }, "127.0.0.1:0")
			defer p.close(b)
			p.handle(func(_ context.Context, _ string, body []byte) ([]byte, error) { return body, nil })
			body := make([]byte, 1024)
			b.ReportAllocs()
			b.SetBytes(1024)
			if parallel == 1 {
				for b.Loop() {
					if _, err := p.client.Call(b.Context(), p.b.Advertise(), "echo", body); err != nil {
						b.Fatal(err)
					}
				}
				return
			}
			b.SetParallelism(parallel / 2)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := p.client.Call(b.Context(), p.b.Advertise(), "echo", body); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

func TestOnlyNamedNodeAnswers(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, network func(byte) Network, address string) {
		p := newPair(t, network, address)
		defer p.close(t)
		p.handle(func(context.Context, string, []byte) ([]byte, error) { return []byte("here"), nil })
		if a, err := p.client.Call(t.Context(), At(nodeID(2), p.b.Advertise()), "m", nil); err != nil || string(a) != "here" {
			t.Errorf("the node itself: %q, %v", a, err)
		}
		if a, err := p.client.Call(t.Context(), At(nodeID(3), p.b.Advertise()), "m", nil); err == nil {
			t.Errorf("another node answers in its place: %q", a)
		}
	})
}
