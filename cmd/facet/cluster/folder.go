package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"facet/cmd/facet/admin"
	"facet/cmd/facet/config"
	"facet/cmd/facet/serve"
)

// The ports of a node follow one another.
const (
	PortDefault = 7420 // for clients; the next ones are for nodes, operators and invitations

	peerOffset   = 1
	adminOffset  = 2
	inviteOffset = 3
	portMax      = 65535 - inviteOffset

	loopback = "127.0.0.1"
)

// Machine describes the node of this machine.
type Machine struct {
	// Dir is the folder of the node. It is created when missing.
	Dir string
	// Name is shown to operators. Zone is the failure domain.
	Name, Zone string
	// Address is the host name or IP address under which other machines reach this
	// one.
	Address string
	// Hosts are further names in the node's certificates.
	Hosts []string
	// Port is the first of the node's ports.
	Port int
	// Assets are the models and the library that runs them.
	Assets config.Assets
}

// folder names the files of a node.
type folder string

func (f folder) in(name ...string) string {
	return filepath.Join(append([]string{string(f)}, name...)...)
}

func (f folder) settings() string     { return f.in("facet.yaml") }
func (f folder) data() string         { return f.in("data") }
func (f folder) certificates() string { return f.in("certificates") }
func (f folder) keys() string         { return f.in("keys") }
func (f folder) clusterKey() string   { return f.in("keys", "cluster.key") }
func (f folder) gossipKey() string    { return f.in("keys", "gossip.key") }
func (f folder) admin() string        { return f.in("admin") }
func (f folder) profile() string      { return f.in("profile.yaml") }

// complete sets defaults and makes the folder absolute.
func (m Machine) complete() (Machine, folder, error) {
	dir, err := filepath.Abs(m.Dir)
	if err != nil {
		return m, "", fmt.Errorf("find %s: %w", m.Dir, err)
	}
	if m.Port < 1 || m.Port > portMax {
		return m, "", fmt.Errorf("--port must be 1 to %d: three more behind it are used, too", portMax)
	}
	if m.Name == "" {
		if m.Name, err = os.Hostname(); err != nil {
			return m, "", fmt.Errorf("find this machine's name: give one with --name: %w", err)
		}
	}
	f := folder(dir)
	if _, err := os.Stat(f.settings()); !errors.Is(err, fs.ErrNotExist) {
		return m, "", fmt.Errorf("there is a node in %s already: start it with \"facet serve --config %s\", or choose another --dir", dir, f.settings())
	}
	return m, f, nil
}

// at returns an address of this machine for others.
func (m Machine) at(offset int) string {
	return net.JoinHostPort(m.Address, strconv.Itoa(m.Port+offset))
}

// listen returns the address to listen on: all interfaces, unless the node is on
// loopback.
func (m Machine) listen(offset int) string {
	host := ""
	if ip := net.ParseIP(m.Address); ip != nil && ip.IsLoopback() {
		host = m.Address
	}
	return net.JoinHostPort(host, strconv.Itoa(m.Port+offset))
}

// admin returns the address of the admin port, which is reachable from this machine
// only.
func (m Machine) admin() string { return net.JoinHostPort(loopback, strconv.Itoa(m.Port+adminOffset)) }

// hosts returns the names in the node's certificates.
func (m Machine) hosts() []string {
	list := append([]string{m.Address, loopback, "localhost"}, m.Hosts...)
	slices.Sort(list)
	return slices.Compact(list)
}

// check fills in the address of the machine if it has none: the one from which
// packets go to the address to. It chooses the model pack and returns its identity, or
// an error if a port is in use.
func (m *Machine) check(ctx context.Context, to string) (pack string, err error) {
	if m.Address == "" {
		if m.Address, err = outgoing(ctx, to); err != nil {
			return "", fmt.Errorf("find how other machines reach this one: give --address: %w", err)
		}
	}
	if m.Assets.Models, pack, err = serve.Pack(m.Assets.Models, ""); err != nil {
		return "", err
	}
	return pack, m.checkPorts(ctx)
}

// made describes the node in f. authority is the folder with the authority, or ""
// if another machine has it.
func (m Machine) made(f folder, authority string) Made {
	return Made{Config: f.settings(), Profile: f.profile(), Authority: authority, Name: m.Name, URL: "https://" + m.at(0)}
}

// checkPorts returns an error for a port in use, before anything is created.
func (m Machine) checkPorts(ctx context.Context) error {
	var l net.ListenConfig
	for _, address := range []string{m.listen(0), m.listen(peerOffset), m.admin()} {
		c, err := l.Listen(ctx, "tcp", address)
		if err != nil {
			return fmt.Errorf("%s can't be listened on: another process has the port, or it is not this machine's address (--port chooses other ports): %w", address, err)
		}
		c.Close()
	}
	p, err := l.ListenPacket(ctx, "udp", m.listen(peerOffset))
	if err != nil {
		return fmt.Errorf("%s can't be listened on for UDP (--port chooses other ports): %w", m.listen(peerOffset), err)
	}
	return p.Close()
}

// write writes the settings of the node and the profile of commands.
func (m Machine) write(f folder, more map[string]any, profile admin.Profile) error {
	values := map[string]any{
		"name": m.Name, "dir": f.data(),
		"peer-address": m.listen(peerOffset), "peer-advertise": m.at(peerOffset),
		"public-address": m.listen(0), "public-url": "https://" + m.at(0), "admin-address": m.admin(),
		"certificates": f.certificates(), "cluster-key": f.clusterKey(), "gossip-key": f.gossipKey(),
		"models": m.Assets.Models, "onnxruntime": m.Assets.ONNXRuntime,
	}
	if m.Zone != "" {
		values["zone"] = m.Zone
	}
	if m.Assets.SHA256 != "" {
		values["onnxruntime-sha256"] = m.Assets.SHA256
	}
	maps.Copy(values, more)
	if err := profile.Write(f.profile()); err != nil {
		return err
	}
	return config.Write(f.settings(), values) // last: with it the folder belongs to a node
}

// outgoing returns the IP address under which this machine reaches others. It sends
// nothing.
func outgoing(ctx context.Context, to string) (string, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "udp", to)
	if err != nil {
		return "", err
	}
	defer c.Close()
	host, _, err := net.SplitHostPort(c.LocalAddr().String())
	return host, err
}
