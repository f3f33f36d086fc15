package memnet

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"facet/internal/must"
)

// streams opens a stream between two hosts.
func streams(t *testing.T, n *Network) (near, far net.Conn) {
	t.Helper()
	l, err := n.Host("10.0.0.2").Listen(t.Context(), ":7000")
	must.Do(t, err)
	defer l.Close()
	if near, err = n.Host("10.0.0.1").Dial(t.Context(), "10.0.0.2:7000"); err != nil {
		t.Fatal(err)
	}
	if far, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return near, far
}

// virtual runs f in virtual time.
func virtual(t *testing.T, f func(t *testing.T, n *Network)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { f(t, New(1)) })
}

func TestStreamCarriesEverything(t *testing.T) {
	virtual(t, func(t *testing.T, n *Network) {
		near, far := streams(t, n)
		sent := bytes.Repeat([]byte("0123456789"), bufferBytes) // ten buffers
		go func() {
			_, _ = near.Write(sent)
			_ = near.Close()
		}()
		got, err := io.ReadAll(far)
		if err != nil || !bytes.Equal(got, sent) {
			t.Errorf("got %d bytes %v, want %d", len(got), err, len(sent))
		}
		if _, err := far.Write([]byte{1}); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("write to a closed end: got %v", err)
		}
		if _, err := near.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("read from a closed end: got %v", err)
		}
	})
}

func TestDeadlinesEndReadsAndWrites(t *testing.T) {
	virtual(t, func(t *testing.T, n *Network) {
		near, far := streams(t, n)
		begin := time.Now()
		after := func(what string, want time.Duration, err error) {
			t.Helper()
			if got := time.Since(begin); got != want || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s: got %v after %v, want a timeout after %v", what, err, got, want)
			}
		}
		_ = far.SetReadDeadline(begin.Add(time.Second))
		_, err := far.Read(make([]byte, 1))
		after("read", time.Second, err)
		_ = far.SetReadDeadline(time.Time{})
		time.AfterFunc(time.Second, func() { _ = far.SetReadDeadline(time.Now()) }) // while it waits
		_, err = far.Read(make([]byte, 1))
		after("read that waits", 2*time.Second, err)
		_ = near.SetWriteDeadline(begin.Add(3 * time.Second))
		wrote, err := near.Write(make([]byte, bufferBytes+1))
		after("write into a full buffer", 3*time.Second, err)
		if wrote != bufferBytes {
			t.Errorf("wrote %d bytes, want %d", wrote, bufferBytes)
		}
	})
}

func TestCutLinkHoldsBackOneDirection(t *testing.T) {
	virtual(t, func(t *testing.T, n *Network) {
		near, far := streams(t, n)
		n.Set("10.0.0.1", "10.0.0.2", Link{Cut: true})
		_, _ = near.Write([]byte("late"))
		_, _ = far.Write([]byte("now"))
		b := make([]byte, 8)
		if k, err := near.Read(b); err != nil || string(b[:k]) != "now" {
			t.Errorf("the whole direction: got %q %v", b[:k], err)
		}
		begin := time.Now()
		time.AfterFunc(time.Minute, n.Heal)
		if k, err := far.Read(b); err != nil || string(b[:k]) != "late" || time.Since(begin) != time.Minute {
			t.Errorf("the cut direction: got %q %v after %v", b[:k], err, time.Since(begin))
		}
		n.Isolate("10.0.0.2")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := n.Host("10.0.0.1").Dial(ctx, "10.0.0.2:7000"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("dial: got %v", err)
		}
		n.Heal()
		if _, err := n.Host("10.0.0.1").Dial(t.Context(), "10.0.0.2:7000"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dial where nobody listens: got %v", err)
		}
	})
}

func TestDelayKeepsTheOrder(t *testing.T) {
	virtual(t, func(t *testing.T, n *Network) {
		near, far := streams(t, n)
		n.Set("10.0.0.1", "10.0.0.2", Link{Delay: 100 * time.Millisecond})
		begin := time.Now()
		for _, s := range []string{"a", "b", "c"} {
			_, _ = io.WriteString(near, s)
		}
		_ = near.Close()
		got, err := io.ReadAll(far)
		if string(got) != "abc" || err != nil || time.Since(begin) != 100*time.Millisecond {
			t.Errorf("got %q %v after %v", got, err, time.Since(begin))
		}
	})
}

// Packets arrive or get lost.
func TestPacketsNeverWait(t *testing.T) {
	virtual(t, func(t *testing.T, n *Network) {
		a, err := n.Host("10.0.0.1").ListenPacket(t.Context(), ":1")
		must.Do(t, err)
		b, err := n.Host("10.0.0.2").ListenPacket(t.Context(), ":2")
		must.Do(t, err)
		to := &net.UDPAddr{IP: net.ParseIP("10.0.0.2"), Port: 2}
		count := func(l Link, send int) (got int) {
			t.Helper()
			n.Set("10.0.0.1", "10.0.0.2", l)
			for range send {
				if _, err := a.WriteTo([]byte("packet"), to); err != nil {
					t.Fatal(err)
				}
			}
			_ = b.SetReadDeadline(time.Now().Add(time.Second))
			for {
				k, from, err := b.ReadFrom(make([]byte, 64))
				if errors.Is(err, os.ErrDeadlineExceeded) {
					return got
				}
				if k != len("packet") || from.String() != "10.0.0.1:1" || err != nil {
					t.Fatalf("got %d bytes from %v, %v", k, from, err)
				}
				got++
			}
		}
		if got := count(Link{}, 100); got != 100 {
			t.Errorf("perfect: got %d of 100", got)
		}
		if got := count(Link{Delay: 500 * time.Millisecond}, 100); got != 100 {
			t.Errorf("slow: got %d of 100", got)
		}
		if got := count(Link{Cut: true}, 100); got != 0 {
			t.Errorf("cut: got %d of 100", got)
		}
		if got := count(Link{Loss: 0.5}, 1000); got < 400 || got > 600 {
			t.Errorf("half lost: got %d of 1000", got)
		}
		if got := count(Link{}, packetsMax+50); got != packetsMax {
			t.Errorf("too many: got %d, want %d", got, packetsMax)
		}
		_ = b.Close()
		if _, _, err := b.ReadFrom(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("closed: got %v", err)
		}
	})
}

func TestCloseFreesAddress(t *testing.T) {
	virtual(t, func(t *testing.T, n *Network) {
		h := n.Host("10.0.0.1")
		l, err := h.Listen(t.Context(), "10.0.0.1:80")
		must.Do(t, err)
		if _, err := h.Listen(t.Context(), "0.0.0.0:80"); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("twice: got %v", err)
		}
		if _, err := h.Listen(t.Context(), "10.0.0.2:80"); !errors.Is(err, syscall.EADDRNOTAVAIL) {
			t.Errorf("another's address: got %v", err)
		}
		must.Do(t, l.Close())
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("accept after close: got %v", err)
		}
		if _, err := h.Listen(t.Context(), ":80"); err != nil {
			t.Errorf("after close: %v", err)
		}
	})
}
