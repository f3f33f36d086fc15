package ports

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// Ports lie below the range for outgoing connections, and are locked in blocks.
const (
	first     = 10_000
	blockSize = 50
	blocks    = 200
)

var errNone = errors.New("every block of ports is taken")

// own contains the blocks of this process. Their locks end with it.
var own struct {
	mu    sync.Mutex
	files []*os.File
	next  int // the next port of the last block
	left  int // ports of the last block that were not tried
}

// Take returns n ports of 127.0.0.1 that are free for TCP and UDP now. No other
// process gets them while this one runs.
func Take(n int) ([]int, error) {
	own.mu.Lock()
	defer own.mu.Unlock()
	taken := make([]int, 0, n)
	for len(taken) < n {
		if own.left == 0 {
			if err := lockBlock(); err != nil {
				return nil, fmt.Errorf("take %d ports: %w", n, err)
			}
		}
		port := own.next
		own.next, own.left = own.next+1, own.left-1
		if free(port) {
			taken = append(taken, port)
		}
	}
	return taken, nil
}

// Row takes n ports in a row, at most blockSize, and returns the first.
func Row(n int) (int, error) {
	for {
		own.mu.Lock()
		if own.left < n {
			own.left = 0
		}
		own.mu.Unlock()
		taken, err := Take(n)
		if err != nil {
			return 0, err
		}
		if taken[n-1]-taken[0] == n-1 {
			return taken[0], nil
		}
	}
}

// lockBlock locks a block that no process owns.
func lockBlock() error {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("facet-ports-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, block := range rand.Perm(blocks) {
		f, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(block)), os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
		if err != nil {
			return err
		}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			own.files = append(own.files, f)
			own.next, own.left = first+block*blockSize, blockSize
			return nil
		} else if !errors.Is(err, syscall.EWOULDBLOCK) {
			return errors.Join(fmt.Errorf("lock %s: %w", f.Name(), err), f.Close())
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return errNone
}

// free reports whether no program listens at a port.
func free(port int) bool {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	l, err := net.Listen("tcp", address)
	if err != nil {
		return false
	}
	defer l.Close()
	p, err := net.ListenPacket("udp", address)
	if err != nil {
		return false
	}
	return p.Close() == nil
}
