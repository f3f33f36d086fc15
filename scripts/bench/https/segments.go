package https

import (
	"fmt"
	"syscall"
)

// segmentBytes is the most bytes of a TCP segment, as on an Ethernet. The loopback's segments of
// 64 KB fill a new connection's receive buffer with two. When a busy reader then opens the window
// by less than one, the sender waits for a timer: whole bodies took 50 to 66 ms longer.
const segmentBytes = 1448

// smallSegments sets segmentBytes for a socket that is not connected yet.
func smallSegments(_, _ string, c syscall.RawConn) error {
	var err error
	if failure := c.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_MAXSEG, segmentBytes)
	}); failure != nil {
		err = failure
	}
	if err != nil {
		return fmt.Errorf("set the size of segments: %w", err)
	}
	return nil
}
