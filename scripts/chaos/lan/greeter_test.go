//go:build linux

package lan_test

import (
	"io"
	"net"
	"time"
)

// greet says hello on every connection until it is killed.
func greet(address string) {
	var l net.Listener
	for l == nil {
		l, _ = net.Listen("tcp", address) // the interface may not be up yet
		time.Sleep(5 * time.Millisecond)
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, "hello")
		_ = conn.Close()
	}
}

func copyAll(to io.Writer, from io.Reader) (int64, error) { return io.Copy(to, from) }
