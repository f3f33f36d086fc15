package httpapi

import (
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
)

// scripted is a listener that fails as told, then gives one connection.
type scripted struct {
	net.Listener
	errs []error
}

func (l *scripted) Accept() (net.Conn, error) {
	if len(l.errs) > 0 {
		err := l.errs[0]
		l.errs = l.errs[1:]
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", err)}
	}
	a, b := net.Pipe()
	_ = b.Close()
	return a, nil
}

func TestAcceptOutlastsErrorsThatPass(t *testing.T) {
	t.Parallel()
	l := newBoundedListener(&scripted{errs: []error{syscall.EMFILE, syscall.ENFILE, syscall.ECONNABORTED}}, Limits{Connections: 1, ConnectionsPerIP: 1})
	c, err := l.Accept()
	if err != nil {
		t.Fatalf("accept: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	l.Listener.(*scripted).errs = []error{syscall.EINVAL}
	if _, err := l.Accept(); err == nil {
		t.Error("an error that stays was waited out")
	}
}

// from is a connection from an address.
type from struct {
	net.Conn
	addr net.Addr
}

func (c from) RemoteAddr() net.Addr { return c.addr }

func TestConnectionsAreCountedByIPv4AddressAndIPv6Site(t *testing.T) {
	t.Parallel()
	f := func(text, want string) {
		t.Helper()
		ip := netip.MustParseAddr(text)
		got := address(from{addr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(ip, 9))})
		if got != netip.MustParseAddr(want) {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	f("192.0.2.7", "192.0.2.7")
	f("::ffff:192.0.2.7", "192.0.2.7")
	f("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::")
	f("fe80::1%eth0", "fe80::")
	if got := address(from{addr: &net.UnixAddr{}}); got.IsValid() {
		t.Errorf("a connection without address: got %s", got)
	}
}

func TestConnectionsAreCountedOnce(t *testing.T) {
	t.Parallel()
	l := newBoundedListener(nil, Limits{Connections: 3, ConnectionsPerIP: 2})
	open := func(ip string) *boundedConn {
		a, b := net.Pipe()
		t.Cleanup(func() { _ = b.Close() })
		c := &boundedConn{Conn: a, listener: l, ip: netip.MustParseAddr(ip)}
		if !l.add(c) {
			return nil
		}
		return c
	}
	first, second := open("192.0.2.1"), open("192.0.2.1")
	if first == nil || second == nil || open("192.0.2.1") != nil {
		t.Fatal("not two connections of one address")
	}
	if open("192.0.2.2") == nil || open("192.0.2.3") != nil {
		t.Fatal("not three connections in all")
	}
	for range 2 { // closing twice is closing once
		if err := first.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if open("192.0.2.1") == nil || open("192.0.2.1") != nil {
		t.Error("closing one connection does not make room for one")
	}
}
