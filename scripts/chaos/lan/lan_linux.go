package lan

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// hostsMax is the most hosts of a LAN.
const hostsMax = 200

// LAN is a network of hosts. Their addresses are 10.77.0.1 for host 0, and so on.
type LAN struct {
	hosts    []*host
	ethernet *ethernet
}

// host is a network namespace and the thread that lives in it. Processes that the
// thread starts die with the thread, and so at the latest with this process.
type host struct {
	ns    netns.NsHandle
	tap   *os.File
	calls chan func()
	work  sync.WaitGroup
}

// Open creates a LAN.
func Open(hosts int) (*LAN, error) {
	if hosts < 1 || hosts > hostsMax {
		return nil, fmt.Errorf("a LAN has 1 to %d hosts, not %d", hostsMax, hosts)
	}
	l := &LAN{}
	var ports []port
	for i := range hosts {
		h, err := openHost(i)
		if err != nil {
			l.ethernet = newEthernet(ports)
			l.Close()
			return nil, fmt.Errorf("make host %d: %w", i, err)
		}
		l.hosts = append(l.hosts, h)
		ports = append(ports, h.tap)
	}
	l.ethernet = newEthernet(ports)
	return l, nil
}

// Address returns the IP address of a host.
func Address(host int) string { return fmt.Sprintf("10.77.0.%d", host+1) }

// Set changes the link from one host to another.
func (l *LAN) Set(from, to int, link Link) { l.ethernet.wires[from][to].link.Store(&link) }

// Heal makes all links perfect.
func (l *LAN) Heal() {
	for from := range l.hosts {
		for to := range l.hosts {
			l.Set(from, to, Link{})
		}
	}
}

// Start starts a process on a host. The process gets SIGKILL when the LAN closes or
// this process ends.
func (l *LAN) Start(on int, cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	cmd.SysProcAttr.Setsid = true // without a terminal SIGHUP does not end a node
	done := make(chan error, 1)
	l.hosts[on].calls <- func() { done <- cmd.Start() }
	return <-done
}

// Dial connects from a host to an address (TCP, no name look-up).
func (l *LAN) Dial(ctx context.Context, from int, address string) (net.Conn, error) {
	type answer struct {
		conn net.Conn
		err  error
	}
	done := make(chan answer, 1)
	go func() { // ends with the dial, and its thread with it
		runtime.LockOSThread()
		if err := netns.Set(l.hosts[from].ns); err != nil {
			done <- answer{nil, fmt.Errorf("enter the namespace of host %d: %w", from, err)}
			return
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp4", address)
		done <- answer{conn, err}
	}()
	a := <-done
	return a.conn, a.err
}

// Close ends all hosts and their processes.
func (l *LAN) Close() {
	if l.ethernet != nil {
		l.ethernet.close()
	}
	for _, h := range l.hosts {
		close(h.calls)
		h.work.Wait()
		_ = h.ns.Close() // the kernel frees the namespace when no process is in it
	}
}

func openHost(number int) (*host, error) {
	h := &host{calls: make(chan func())}
	made := make(chan error, 1)
	h.work.Go(func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		err := h.make(number)
		made <- err
		if err != nil {
			return
		}
		for call := range h.calls {
			call()
		}
	})
	if err := <-made; err != nil {
		h.work.Wait()
		return nil, err
	}
	return h, nil
}

// make creates a namespace with one interface for the calling thread.
func (h *host) make(number int) error {
	ns, err := netns.New()
	if err != nil {
		return fmt.Errorf("make a network namespace: %w", err)
	}
	h.ns = ns
	h.tap, err = openTap("eth0")
	if err != nil {
		return errors.Join(err, ns.Close())
	}
	return errors.Join(configure(number))
}

// configure sets the addresses of the namespace's interfaces.
func configure(number int) error {
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find lo: %w", err)
	}
	eth, err := netlink.LinkByName("eth0")
	if err != nil {
		return fmt.Errorf("find eth0: %w", err)
	}
	address, err := netlink.ParseAddr(Address(number) + "/24")
	if err != nil {
		return fmt.Errorf("address of host %d: %w", number, err)
	}
	for _, step := range []error{
		netlink.LinkSetUp(loopback),
		netlink.LinkSetHardwareAddr(eth, net.HardwareAddr{2, 0, 0, 0, 0, byte(number)}),
		netlink.AddrAdd(eth, address),
		netlink.LinkSetUp(eth),
	} {
		if step != nil {
			return fmt.Errorf("set up the network of host %d: %w", number, step)
		}
	}
	return nil
}

// openTap creates a TAP interface in the calling thread's namespace.
func openTap(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open the TAP device: %w", err)
	}
	var request struct {
		name  [unix.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}
	copy(request.name[:], name)
	request.flags = unix.IFF_TAP | unix.IFF_NO_PI
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TUNSETIFF, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return nil, errors.Join(fmt.Errorf("make a TAP interface: %w", errno), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), name), nil
}
