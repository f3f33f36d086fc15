package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"facet/internal/id"
	"facet/internal/must"
	"facet/node/transport/memnet"
)

// triangle is three nodes at 10.0.0.1 to 10.0.0.3. Node 3 relays, unless refuses is set.
type triangle struct {
	net     *memnet.Network
	muxes   [4]*Mux // from 1
	refuses atomic.Bool
}

func (r *triangle) at(n int) string { return fmt.Sprintf("10.0.0.%d:7000", n) }

func (r *triangle) cut(a, b int, is bool) {
	for _, p := range [][2]int{{a, b}, {b, a}} {
		r.net.Set(fmt.Sprintf("10.0.0.%d", p[0]), fmt.Sprintf("10.0.0.%d", p[1]), memnet.Link{Cut: is})
	}
}

// inTriangle runs f in virtual time with the link between nodes 1 and 2 cut.
func inTriangle(t *testing.T, f func(t *testing.T, r *triangle)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ca := newCA(t, "one")
		r := &triangle{net: memnet.New(1)}
		for n := 1; n <= 3; n++ {
			c := Config{Network: r.net.Host(fmt.Sprintf("10.0.0.%d", n)), Addr: ":7000", Advertise: r.at(n), TLS: nodeTLS(t, ca, byte(n)), Log: slog.New(slog.DiscardHandler)}
			if n == 3 {
				c.Relay = func(from, to id.Node) (string, error) {
					if r.refuses.Load() || from != nodeID(1) || to != nodeID(2) {
						return "", errors.New("not to be relayed")
					}
					return r.at(2), nil
				}
			}
			m, err := Open(t.Context(), c)
			must.Do(t, err)
			defer closeAll(t, m)
			r.muxes[n] = m
		}
		r.cut(1, 2, true)
		f(t, r)
	})
}

// server makes node n answer each request with its caller.
func (r *triangle) server(t *testing.T, n int) *Server {
	t.Helper()
	listener, err := r.muxes[n].Peers()
	must.Do(t, err)
	return OpenServer(ServerConfig{Listener: listener, Log: slog.New(slog.DiscardHandler), Handler: func(ctx context.Context, method string, body []byte) ([]byte, error) {
		who, _ := Caller(ctx)
		if method == "wait" {
			<-ctx.Done()
		}
		return append([]byte(who.String()), body...), ctx.Err()
	}})
}

func TestRelayedStreamKeepsOrigin(t *testing.T) {
	inTriangle(t, func(t *testing.T, r *triangle) {
		s, c := r.server(t, 2), OpenClient(r.muxes[1])
		defer closeAll(t, c, s)
		r.muxes[1].Reroute(r.at(2), Route{Through: r.at(3), To: nodeID(2)})
		big := make([]byte, BodyBytesMax-64)
		for _, body := range [][]byte{nil, big} {
			got, err := c.Call(t.Context(), At(nodeID(2), r.at(2)), "who", body)
			if want := nodeID(1).String(); err != nil || len(got) != len(want)+len(body) || string(got[:len(want)]) != want {
				t.Errorf("got %d bytes %.40q %v, want the answer to %s", len(got), got, err, want)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		if _, err := c.Call(ctx, At(nodeID(2), r.at(2)), "wait", nil); err == nil || time.Since(began) != 3*time.Second {
			t.Errorf("a call with 3 s: %v after %s", err, time.Since(began))
		}
		if _, err := c.Call(t.Context(), At(nodeID(3), r.at(2)), "who", nil); err == nil {
			t.Error("node 2 answered for node 3")
		}
	})
}

func TestRelayServesOnlyPermittedStreams(t *testing.T) {
	inTriangle(t, func(t *testing.T, r *triangle) {
		s, c := r.server(t, 2), OpenClient(r.muxes[1])
		defer closeAll(t, c, s)
		r.muxes[1].Reroute(r.at(2), Route{Through: r.at(3), To: nodeID(2)})
		r.refuses.Store(true)
		began := time.Now()
		_, err := c.Call(t.Context(), r.at(2), "who", nil)
		if timeout, ok := errors.AsType[net.Error](err); !errors.Is(err, ErrNotSent) || !ok || !timeout.Timeout() || time.Since(began) > time.Second {
			t.Errorf("got %v after %s, want ErrNotSent and a timeout at once", err, time.Since(began))
		}
		r.refuses.Store(false)
		if _, err := c.Call(t.Context(), r.at(2), "who", nil); err != nil {
			t.Error(err)
		}
		// Node 1 relays nothing, as a node of an older release.
		back := OpenClient(r.muxes[2])
		defer closeAll(t, back)
		r.muxes[2].Reroute(r.at(3), Route{Through: r.at(1), To: nodeID(3)})
		r.cut(1, 2, false)
		if _, err := back.Call(t.Context(), r.at(3), "who", nil); !errors.Is(err, ErrNotSent) {
			t.Errorf("through a node that relays nothing: %v", err)
		}
	})
}

func TestRerouteEndsHangingCallsAndDials(t *testing.T) {
	inTriangle(t, func(t *testing.T, r *triangle) {
		s, c := r.server(t, 2), OpenClient(r.muxes[1])
		defer closeAll(t, c, s)
		r.cut(1, 2, false)
		if _, err := c.Call(t.Context(), r.at(2), "who", nil); err != nil {
			t.Fatal(err)
		}
		r.cut(1, 2, true)
		began := time.Now()
		time.AfterFunc(time.Second, func() { r.muxes[1].Reroute(r.at(2), Route{Through: r.at(3), To: nodeID(2)}) })
		dialled := make(chan error, 1)
		go func() { // hangs in the dial, and goes on through node 3
			conn, err := r.muxes[1].Dial(t.Context(), KindPeer, 0, r.at(2))
			if err == nil {
				err = conn.Close()
			}
			dialled <- err
		}()
		if _, err := c.Call(t.Context(), r.at(2), "who", nil); !errors.Is(err, ErrOutcomeUnknown) || time.Since(began) != time.Second {
			t.Errorf("the hanging call: %v after %s, want ErrOutcomeUnknown after 1 s", err, time.Since(began))
		}
		if err := <-dialled; err != nil || time.Since(began) != time.Second {
			t.Errorf("the hanging dial: %v after %s, want a stream after 1 s", err, time.Since(began))
		}
		if _, err := c.Call(t.Context(), r.at(2), "who", nil); err != nil {
			t.Errorf("the next call: %v", err)
		}
		// Back on the direct way a call in progress goes on, and the next takes the direct way.
		r.cut(1, 2, false)
		waits := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_, err := c.Call(ctx, r.at(2), "wait", nil)
			waits <- err
		}()
		synctest.Wait()
		r.muxes[1].Reroute(r.at(2), Route{})
		synctest.Wait()
		select {
		case err := <-waits:
			t.Errorf("the call in progress ended: %v", err)
		default:
		}
		cancel()
		<-waits
		r.cut(1, 3, true) // node 3 can't relay
		if _, err := c.Call(t.Context(), r.at(2), "who", nil); err != nil {
			t.Errorf("directly again: %v", err)
		}
	})
}
