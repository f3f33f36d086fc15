package admin

import (
	"context"
	"net"
)

// Dialer connects to host:port, as net.Dialer.DialContext does.
type Dialer func(ctx context.Context, network, address string) (net.Conn, error)

type dialerKey struct{}

// WithDialer returns a context whose requests reach the nodes through another network than the system's.
func WithDialer(ctx context.Context, d Dialer) context.Context {
	return context.WithValue(ctx, dialerKey{}, d)
}

// Dial connects to a node with the dialer of ctx, or else within dialTimeout through the system's network.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if d, ok := ctx.Value(dialerKey{}).(Dialer); ok {
		return d(ctx, network, address)
	}
	system := net.Dialer{Timeout: dialTimeout}
	return system.DialContext(ctx, network, address)
}
