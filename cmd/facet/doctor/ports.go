package doctor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"facet/cmd/facet/config"
	"facet/node/cert"
	"facet/node/transport"
)

// seedTimeout bounds the call of a seed.
const seedTimeout = 2 * time.Second

// ports checks that the node's ports are free, or taken by the node itself.
func (x *examination) ports(ctx context.Context, s *config.Settings) {
	for _, p := range []struct{ name, network, address string }{
		{"peer-address", "tcp", s.PeerAddress}, {"peer-address", "udp", s.PeerAddress}, {"public-address", "tcp", s.PublicAddress}, {"admin-address", "tcp", s.AdminAddress},
	} {
		where := p.name + " " + p.address + " " + strings.ToUpper(p.network)
		err := bind(ctx, p.network, p.address)
		switch {
		case err == nil && x.node > 0:
			x.problem("ports", "restart the node: its settings were changed since", "%s: the node (process %d) does not listen on it", where, x.node)
		case err == nil:
			x.ok("ports", "%s is free", where)
		case !errors.Is(err, syscall.EADDRINUSE):
			x.problem("ports", "set "+p.name+" to an address of this machine and a port that the service may open", "%s: %v", where, err)
		default:
			x.taken(p.network, p.address, where)
		}
	}
}

// bind opens a port and closes it at once.
func bind(ctx context.Context, network, address string) error {
	var c net.ListenConfig
	if network == "udp" {
		l, err := c.ListenPacket(ctx, network, address)
		if err == nil {
			err = l.Close()
		}
		return err
	}
	l, err := c.Listen(ctx, network, address)
	if err == nil {
		err = l.Close()
	}
	return err
}

// taken says who has a port.
func (x *examination) taken(network, address, where string) {
	_, text, _ := net.SplitHostPort(address)
	port, _ := strconv.Atoi(text)
	pid, name := portOwner(network, port)
	switch {
	case pid > 0 && pid == x.node:
		x.ok("ports", "%s is the running node's (process %d)", where, pid)
	case pid > 0:
		x.problem("ports", "stop that process, or choose another port", "%s is taken by process %d (%s)", where, pid, name)
	case x.node > 0:
		x.ok("ports", "%s is taken, most likely by the running node (process %d)", where, x.node)
	default:
		x.problem("ports", "ss -lntup as root shows by whom", "%s is taken by a process of another user", where)
	}
}

// seeds looks up the address that other nodes call, and calls the nodes that the settings name.
func (x *examination) seeds(ctx context.Context, s *config.Settings) {
	own := s.Advertised()
	if _, err := (transport.OS{}).Resolve(ctx, own); err != nil {
		x.problem("seeds", "set peer-advertise to the HOST:PORT at which other nodes reach this one", "other nodes can't find this one at %s: %v", own, err)
	}
	in := func(name string) string { return filepath.Join(s.Certificates, name) }
	source, err := cert.Load(cert.Files{CA: in("ca.pem"), Cert: in("node.pem"), Key: in("node.key")}, slog.New(slog.DiscardHandler))
	if err != nil {
		return // certificates has said so
	}
	for _, seed := range s.Seeds {
		if seed == own || seed == s.PeerAddress {
			continue
		}
		err := greet(ctx, seed, source.PeerConfig())
		switch {
		case err == nil:
			x.ok("seeds", "%s answers as a node of this cluster", seed)
		case errors.Is(err, cert.ErrStranger):
			x.problem("seeds", "correct seeds, or copy the certificates of one authority to both", "%s is no node of this cluster: %v", seed, err)
		default:
			x.warn("seeds", "start that node; else look at firewalls between the machines (TCP and UDP)", "%s: %v", seed, err)
		}
	}
}

// greet makes a handshake with a node.
func greet(ctx context.Context, address string, c *tls.Config) error {
	ctx, cancel := context.WithTimeout(ctx, seedTimeout)
	defer cancel()
	conn, err := (&tls.Dialer{Config: c}).DialContext(ctx, "tcp", address)
	if err != nil {
		if failed, ok := errors.AsType[*net.OpError](err); ok && failed.Op == "dial" {
			return fmt.Errorf("does not answer: %w", failed.Err)
		}
		return err
	}
	return conn.Close()
}
