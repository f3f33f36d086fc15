package transport

import (
	"context"
	"net"
)

// Network is the part of the machine's network that this package uses. Addresses
// are host:port; port 0 of a listening address chooses a free one.
type Network interface {
	// Listen opens a stream listener (TCP).
	Listen(ctx context.Context, address string) (net.Listener, error)
	// Dial opens a stream to address. It stops when ctx ends.
	Dial(ctx context.Context, address string) (net.Conn, error)
	// ListenPacket opens a packet socket (UDP).
	ListenPacket(ctx context.Context, address string) (net.PacketConn, error)
	// Resolve returns the addresses that a packet to address can be sent to, at
	// least one. It may look the host up.
	Resolve(ctx context.Context, address string) ([]net.Addr, error)
}

// OS is the network of the operating system.
type OS struct{}

// Listen opens a TCP listener.
func (OS) Listen(ctx context.Context, address string) (net.Listener, error) {
	var lc net.ListenConfig
	return lc.Listen(ctx, "tcp", address)
}

// Dial opens a TCP connection.
func (OS) Dial(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", address)
}

// ListenPacket opens a UDP socket.
func (OS) ListenPacket(ctx context.Context, address string) (net.PacketConn, error) {
	var lc net.ListenConfig
	return lc.ListenPacket(ctx, "udp", address)
}

// Resolve looks the host of address up; IP addresses need no look-up.
func (OS) Resolve(ctx context.Context, address string) ([]net.Addr, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	number, err := net.DefaultResolver.LookupPort(ctx, "udp", port)
	if err != nil {
		return nil, err
	}
	ips, err := net.DefaultResolver.LookupIPAddr(ctx, host)
	if err != nil {
		return nil, err
	}
	if len(ips) == 0 {
		return nil, &net.DNSError{Err: "no address", Name: host, IsNotFound: true}
	}
	out := make([]net.Addr, len(ips))
	for i, ip := range ips {
		out[i] = &net.UDPAddr{IP: ip.IP, Zone: ip.Zone, Port: number}
	}
	return out, nil
}
