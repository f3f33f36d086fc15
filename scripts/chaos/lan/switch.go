package lan

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

const (
	frameMax = 1 << 16
	// queueMax is the most frames on their way from one host to another. A full
	// queue drops frames, as a switch does.
	queueMax = 4096
)

// Link describes one direction between two hosts. The zero Link delivers frames at
// once.
type Link struct {
	Cut   bool
	Delay time.Duration
	// Loss is the share of frames that are lost, 0 to 1.
	Loss float64
}

// port is one host's end of a cable: the switch reads and writes whole frames.
type port interface {
	Read(frame []byte) (int, error)
	Write(frame []byte) (int, error)
	Close() error
}

// ethernet is the switch. The addresses of its hosts end in their numbers, so it
// need not learn them.
type ethernet struct {
	ports []port
	wires [][]*wire // by sender, receiver
	work  sync.WaitGroup
	done  chan struct{}
}

// wire carries frames in one direction.
type wire struct {
	link  atomic.Pointer[Link]
	queue chan framed
}

type framed struct {
	bytes []byte
	due   time.Time
}

func newEthernet(ports []port) *ethernet {
	e := &ethernet{ports: ports, done: make(chan struct{})}
	for from := range ports {
		var row []*wire
		for to := range ports {
			w := &wire{queue: make(chan framed, queueMax)}
			w.link.Store(&Link{})
			row = append(row, w)
			if from != to {
				e.work.Go(func() { e.deliver(w, ports[to]) })
			}
		}
		e.wires = append(e.wires, row)
		e.work.Go(func() { e.forward(from) })
	}
	return e
}

// forward forwards the frames of one host until its port is closed.
func (e *ethernet) forward(from int) {
	buffer := make([]byte, frameMax)
	for {
		n, err := e.ports[from].Read(buffer)
		if err != nil {
			return
		}
		if n < 14 {
			continue
		}
		to := int(buffer[5]) // the last byte of the destination's address
		for i, w := range e.wires[from] {
			if i != from && (buffer[0]&1 == 1 || i == to) {
				w.send(buffer[:n])
			}
		}
	}
}

func (w *wire) send(frame []byte) {
	link := w.link.Load()
	if link.Cut || link.Loss > 0 && rand.Float64() < link.Loss {
		return
	}
	select {
	case w.queue <- framed{append([]byte(nil), frame...), time.Now().Add(link.Delay)}:
	default:
	}
}

// deliver writes frames to a host when they are due, in order.
func (e *ethernet) deliver(w *wire, to port) {
	for {
		select {
		case f := <-w.queue:
			if wait := time.Until(f.due); wait > 0 {
				select {
				case <-time.After(wait):
				case <-e.done:
					return
				}
			}
			if !w.link.Load().Cut {
				_, _ = to.Write(f.bytes) // a host that can't take the frame loses it
			}
		case <-e.done:
			return
		}
	}
}

func (e *ethernet) close() {
	close(e.done)
	for _, p := range e.ports {
		_ = p.Close() // its namespace is removed with it
	}
	e.work.Wait()
}
