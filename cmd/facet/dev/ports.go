package dev

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

const (
	loopback = "127.0.0.1"
	// Ports lie below the range from which systems choose ports by themselves
	// (32768 on Linux, 49152 elsewhere). A port that is free now stays free.
	portFirst = 20_000
	portLast  = 32_000
	portTries = 500
)

var errNoPort = errors.New("no free port found on " + loopback)

// settlePorts sets addresses at which every node of s can listen now. It keeps free
// ones and replaces the others. It returns which were replaced.
func settlePorts(s *state) (replaced []string, err error) {
	used := map[string]bool{}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		for _, a := range []*string{&n.Peer, &n.Public, &n.Admin} {
			old := *a
			if old != "" && !used[old] && free(old) {
				used[old] = true
				continue
			}
			if *a, err = freeAddress(used); err != nil {
				return nil, fmt.Errorf("choose a port of %s: %w", n.Name, err)
			}
			if old != "" {
				replaced = append(replaced, fmt.Sprintf("%s moves from %s to %s: the port is taken", n.Name, old, *a))
			}
		}
	}
	return replaced, nil
}

func freeAddress(used map[string]bool) (string, error) {
	for range portTries {
		a := net.JoinHostPort(loopback, strconv.Itoa(portFirst+rand.IntN(portLast-portFirst)))
		if !used[a] && free(a) {
			used[a] = true
			return a, nil
		}
	}
	return "", errNoPort
}

// free reports whether address is free to listen on, TCP and UDP.
func free(address string) bool {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return false
	}
	l.Close()
	p, err := net.ListenPacket("udp", address)
	if err != nil {
		return false
	}
	return p.Close() == nil
}
