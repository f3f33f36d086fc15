package listener

import (
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
)

// scripted is a listener that returns the scripted errors, then one connection.
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

func TestAcceptRetriesPassingErrors(t *testing.T) {
	t.Parallel()
	l := New(&scripted{errs: []error{syscall.EMFILE, syscall.ENFILE, syscall.ECONNABORTED}}, Limits{Connections: 1, PerIP: 1})
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

// The address is that of an IPv4 client, or the site of an IPv6 client.
func TestConnectionsAreCountedByAddress(t *testing.T) {
	t.Parallel()
	f := func(text, want string) {
		t.Helper()
		ip := netip.MustParseAddr(text)
		got := Address(from{addr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(ip, 9))})
		if got != netip.MustParseAddr(want) {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	f("192.0.2.7", "192.0.2.7")
	f("::ffff:192.0.2.7", "192.0.2.7")
	f("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::")
	f("fe80::1%eth0", "fe80::")
	if got := Address(from{addr: &net.UnixAddr{}}); got.IsValid() {
		t.Errorf("a connection without address: got %s", got)
	}
}

func TestConnectionIsCountedOnce(t *testing.T) {
	t.Parallel()
	l := New(nil, Limits{Connections: 3, PerIP: 2})
	open := func(ip string) *Conn {
		a, b := net.Pipe()
		t.Cleanup(func() { _ = b.Close() })
		c := &Conn{Conn: a, listener: l, ip: netip.MustParseAddr(ip)}
		if _, ok := l.add(c); !ok {
			return nil
		}
		c.Asks() // so that it does not make room for others
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

// When an address has its share, or all connections are taken, one makes room: of the address, or of the
// one with the most connections. One without any request goes first, then the longest idle one.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	t.Parallel()
	l := New(nil, Limits{Connections: 4, PerIP: 3})
	name := map[*Conn]string{}
	open := func(as, ip, wantGone string) *Conn {
		t.Helper()
		c := &Conn{Conn: from{}, listener: l, ip: netip.MustParseAddr(ip)}
		name[c] = as
		victim, ok := l.add(c)
		got := ""
		if victim != nil {
			got = name[victim]
			l.remove(victim) // as the end of the connection does, once more
		}
		if !ok {
			got = "refused"
		}
		if got != wantGone {
			t.Errorf("%s comes: %q goes, want %q", as, got, wantGone)
		}
		return c
	}
	other := open("other", "192.0.2.1", "")
	a := open("a", "192.0.2.9", "")
	b := open("b", "192.0.2.9", "")
	c := open("c", "192.0.2.9", "")
	a.Asks()
	a.Rests()
	b.Asks()
	b.Rests()
	open("d", "192.0.2.9", "c")      // its address has its share; c never had a request
	e := open("e", "192.0.2.2", "d") // nor had d
	f := open("f", "192.0.2.3", "a") // all of its address had requests; a's was first
	for _, busy := range []*Conn{b, e, f} {
		busy.Asks()
	}
	g := open("g", "192.0.2.4", "other") // the only one without a request
	g.Asks()
	open("h", "192.0.2.5", "refused")
	g.Rests()
	g.Rests() // twice is once
	open("i", "192.0.2.5", "g")
	if len(l.open) != 4 || l.idle.Len() != 1 || a.waits != nil || c.waits != nil || other.waits != nil {
		t.Errorf("%d open, %d of them idle, want 4 and 1", len(l.open), l.idle.Len())
	}
}
