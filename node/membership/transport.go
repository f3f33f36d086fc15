package membership

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"facet/node/transport"
)

// Bounds of gossip's packets.
const (
	packetBytesMax = 2048 // memberlist sends at most 1400
	packetsMax     = 512  // packets that wait for memberlist; a further one is lost
	resolveTimeout = 2 * time.Second
	// resolveInterval is how long the result of a look-up is used.
	resolveInterval = 5 * time.Second
	readPause       = 50 * time.Millisecond // after an error of the packet socket
	namePort        = 1                     // port of the made-up address, see gossipTransport
)

// gossipTransport carries memberlist's packets and streams.
//
// memberlist knows a node by name, IP address and port. It refuses a node that
// comes back under another address until that node has been dead for a while. So
// this package gives memberlist an address made from the name, which never changes.
// At each sending it looks up the true address, which may have a host name, by the
// node's name. A node that moved is reached as soon as its new metadata is known.
//
// A "name" with a colon is the true address of a node whose name is not known yet:
// a seed.
type gossipTransport struct {
	network  transport.Network
	streams  *transport.Stream
	packets  net.PacketConn
	route    func(name string) (string, bool) // returns a member's true address
	log      *slog.Logger
	self     string // name of this node's member
	packetCh chan *memberlist.Packet
	streamCh chan net.Conn
	ctx      context.Context // ends with Shutdown
	cancel   context.CancelFunc
	wg       sync.WaitGroup // the two loops

	mu       sync.Mutex            // guards resolved; never held during a look-up
	resolved map[string]resolution // by address; emptied when it is full
}

// resolution is the result of a look-up.
type resolution struct {
	addrs []net.Addr
	err   error
	at    time.Time
}

var _ memberlist.NodeAwareTransport = (*gossipTransport)(nil)

// openTransport registers for gossip on mux and opens the packet socket on the same
// port number.
func openTransport(ctx context.Context, mux *transport.Mux, m *Membership) (*gossipTransport, error) {
	streams, err := mux.Gossip()
	if err != nil {
		return nil, err
	}
	packets, err := mux.Network().ListenPacket(ctx, mux.Addr())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen for packets: %w", err), streams.Close())
	}
	t := &gossipTransport{
		network: mux.Network(), streams: streams, packets: packets,
		route: m.route, log: m.log, self: string(m.self),
		packetCh: make(chan *memberlist.Packet, packetsMax), streamCh: make(chan net.Conn),
		resolved: make(map[string]resolution),
	}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	t.wg.Go(t.readPackets)
	t.wg.Go(t.acceptStreams)
	return t, nil
}

// madeUp returns the address under which memberlist knows a member. The address is
// made from the hash of the member's name and lies in fd00::/8, which is private
// (RFC 4193).
func madeUp(name string) net.IP {
	sum := sha256.Sum256([]byte(name))
	ip := net.IP(sum[:net.IPv6len])
	ip[0] = 0xfd
	return ip
}

// seedName returns the argument for memberlist.Join to call the seed at address.
func seedName(address string) string { return address + "/[::1]:1" }

// FinalAdvertiseAddr returns this node's address for memberlist (madeUp).
func (t *gossipTransport) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return madeUp(t.self), namePort, nil
}

// where returns the true address of a.
func (t *gossipTransport) where(a memberlist.Address) (string, error) {
	if strings.Contains(a.Name, ":") {
		return a.Name, nil
	}
	if address, ok := t.route(a.Name); ok {
		return address, nil
	}
	return "", fmt.Errorf("no address of member %.48q", a.Name)
}

// WriteToAddress sends a packet. One to a member without an address is lost, as packets may be: a
// member that has just joined asks nodes that have not heard of it yet.
func (t *gossipTransport) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	address, err := t.where(a)
	if err != nil {
		t.log.Debug("a gossip packet was not sent", "err", err)
		return time.Now(), nil
	}
	all, err := t.resolve(address)
	if err != nil {
		return time.Time{}, err
	}
	now := time.Now()
	for _, to := range all { // the first may be of the other IP version
		if _, err = t.packets.WriteTo(b, to); err == nil {
			break
		}
	}
	return now, err
}

// resolve returns the addresses of address. It looks them up at most once in
// resolveInterval, because each node gets tens of packets a second.
func (t *gossipTransport) resolve(address string) ([]net.Addr, error) {
	t.mu.Lock()
	r, ok := t.resolved[address]
	t.mu.Unlock()
	if ok && time.Since(r.at) < resolveInterval {
		return r.addrs, r.err
	}
	ctx, cancel := context.WithTimeout(t.ctx, resolveTimeout)
	defer cancel()
	r.addrs, r.err = t.network.Resolve(ctx, address)
	if r.err != nil {
		r.err = fmt.Errorf("resolve %s: %w", address, r.err)
	}
	r.at = time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.resolved) >= membersMax {
		clear(t.resolved)
	}
	t.resolved[address] = r
	return r.addrs, r.err
}

// DialAddressTimeout opens a stream.
func (t *gossipTransport) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	address, err := t.where(a)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(t.ctx, timeout)
	defer cancel()
	return t.streams.Dial(ctx, address)
}

// WriteTo is not used: memberlist prefers WriteToAddress.
func (t *gossipTransport) WriteTo(b []byte, address string) (time.Time, error) {
	return t.WriteToAddress(b, memberlist.Address{Addr: address})
}

// DialTimeout is not used: memberlist prefers DialAddressTimeout.
func (t *gossipTransport) DialTimeout(address string, timeout time.Duration) (net.Conn, error) {
	return t.DialAddressTimeout(memberlist.Address{Addr: address}, timeout)
}

// PacketCh returns the channel of received packets.
func (t *gossipTransport) PacketCh() <-chan *memberlist.Packet { return t.packetCh }

// StreamCh returns the channel of accepted streams.
func (t *gossipTransport) StreamCh() <-chan net.Conn { return t.streamCh }

// Shutdown closes both sockets and waits for their loops.
func (t *gossipTransport) Shutdown() error {
	t.cancel()
	err := errors.Join(t.streams.Close(), ignoreClosed(t.packets.Close()))
	t.wg.Wait()
	return err
}

// readPackets reads packets until Shutdown.
func (t *gossipTransport) readPackets() {
	b := make([]byte, packetBytesMax)
	for {
		n, from, err := t.packets.ReadFrom(b)
		if t.ctx.Err() != nil {
			return
		}
		if err != nil {
			t.log.Warn("read gossip packet", "err", err)
			select {
			case <-t.ctx.Done():
			case <-time.After(readPause):
			}
			continue
		}
		if n == 0 {
			continue // memberlist reads the first byte without a check
		}
		p := &memberlist.Packet{Buf: append([]byte(nil), b[:n]...), From: from, Timestamp: time.Now()}
		select {
		case t.packetCh <- p:
		default: // memberlist is behind: packets may get lost
		}
	}
}

// acceptStreams hands streams to memberlist until Shutdown.
func (t *gossipTransport) acceptStreams() {
	for {
		c, err := t.streams.Accept()
		if err != nil {
			return
		}
		select {
		case t.streamCh <- c:
		case <-t.ctx.Done():
			_ = c.Close()
			return
		}
	}
}

// ignoreClosed returns nil for the error of a second Close, else err.
func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
