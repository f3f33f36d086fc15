package overload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"facet/scripts/bench/https"
	"facet/scripts/bench/machine"
	"facet/scripts/bench/table"
)

const (
	slowDelayGoal = 1.5 // × of the p50 without them
	slowKBGoal    = 256 // KB of memory for a client
	dripEvery     = 500 * time.Millisecond
	dialsAtOnce   = 32
)

// crowd is a set of slow or idle connections.
type crowd struct {
	client *https.Client
	mu     sync.Mutex
	open   []*https.Connection
	errs   []error
}

// join opens n connections, from a new address for about every 1000, and calls begin
// for each.
func (c *crowd) join(n int, begin func(k *https.Connection) error) {
	var dialling sync.WaitGroup
	slots := make(chan struct{}, dialsAtOnce)
	for i := range n {
		slots <- struct{}{}
		dialling.Go(func() {
			defer func() { <-slots }()
			k, err := c.client.Dial(c.client.URL, &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i/1000))})
			if err == nil {
				err = begin(k)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			if err != nil {
				c.errs = append(c.errs, err)
				k.Close()
				return
			}
			c.open = append(c.open, k)
		})
	}
	dialling.Wait()
}

// alive returns the number of connections that the node has not closed.
func (c *crowd) alive() (n int) {
	for _, k := range c.open {
		if err := k.NetConn().SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
			continue
		}
		_, err := k.NetConn().Read(make([]byte, 1))
		if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
			n++
		}
	}
	return n
}

func (c *crowd) leave() {
	for _, k := range c.open {
		_ = k.NetConn().Close()
	}
}

// slowPart uses clients that send headers and bodies very slowly, and clients that send
// requests and never read the answers.
func (b *bench) slowPart(_ context.Context) error {
	before, err := b.alone(20*time.Millisecond, b.phase/3)
	if err != nil {
		return err
	}
	c := &crowd{client: b.client}
	defer c.leave()
	stop := make(chan struct{})
	var dripping sync.WaitGroup
	defer dripping.Wait()
	defer close(stop)
	var beside machine.Sample
	w, err := b.watch(func() error {
		c.join(b.slow, func(k *https.Connection) error {
			return drip(&dripping, stop, k, "POST /v1.1/face/search HTTP/1.1\r\nX-Slow: ")
		})
		c.join(b.slow, func(k *https.Connection) error { return dripBody(&dripping, stop, k) })
		c.join(b.slow, func(k *https.Connection) error { return deaf(&dripping, k) })
		var err error
		beside, err = b.alone(20*time.Millisecond, b.phase)
		return err
	})
	if err != nil {
		return err
	}
	return table.Print(b.out, fmt.Sprintf("Slow clients: %d drip headers, %d a body, %d don't read their answers", b.slow, b.slow, b.slow), []table.Row{
		{What: "a search at a time, p50 beside / without", Value: beside.MS(.5) / before.MS(.5), Unit: "×", Goal: slowDelayGoal, Most: true, About: beside.Times() + "; without " + before.Times()},
		{What: "p99 beside / without", Value: beside.MS(.99) / before.MS(.99), Unit: "×"},
		{What: "memory for each", Value: (w.MostMB - b.rssMB) * 1e3 / float64(max(1, len(c.open))), Unit: "KB", Goal: slowKBGoal, Most: true, About: fmt.Sprintf("%.0f MB at most; %d connections could not be made %v", w.MostMB, len(c.errs), firstOf(c.errs))},
		{What: "connections that the node has left open", Value: float64(c.alive()), Unit: "", About: fmt.Sprintf("of %d, after %v", len(c.open), w.Elapsed.Round(time.Second))},
	})
}

func firstOf(errs []error) string {
	if len(errs) == 0 {
		return ""
	}
	return errs[0].Error()
}

// drip sends head, and then a byte now and then, until the node closes the connection.
func drip(work *sync.WaitGroup, stop <-chan struct{}, k *https.Connection, head string) error {
	if _, err := io.WriteString(k, head); err != nil {
		return err
	}
	work.Go(func() {
		tick := time.NewTicker(dripEvery)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				if _, err := k.Write([]byte("A")); err != nil {
					return
				}
			}
		}
	})
	return nil
}

// dripBody starts a large request with a valid signature and sends its body very
// slowly.
func dripBody(work *sync.WaitGroup, stop <-chan struct{}, k *https.Connection) error {
	large, err := https.NewSearch(make([]byte, 7<<20))
	if err != nil {
		return err
	}
	head, err := k.Head(large)
	if err != nil {
		return err
	}
	return drip(work, stop, k, head+strings.Repeat("A", 64<<10))
}

// deaf requests a document again and again and never reads an answer.
func deaf(work *sync.WaitGroup, k *https.Connection) error {
	ask := "GET /openapi.json HTTP/1.1\r\nHost: bench\r\n\r\n"
	if err := k.NetConn().(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		return err
	}
	work.Go(func() {
		_ = k.SetWriteDeadline(time.Now().Add(https.AnswerTimeout))
		for {
			if _, err := io.WriteString(k, strings.Repeat(ask, 20)); err != nil {
				return
			}
		}
	})
	return nil
}
