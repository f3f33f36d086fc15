//go:build linux

package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"facet/scripts/bench/table"
)

const (
	slowDelayGoal = 1.5 // × of the p50 without them
	slowKBGoal    = 256 // of memory for a client
	dripEvery     = 500 * time.Millisecond
	dialsAtOnce   = 32
)

// crowd are connections that do no good.
type crowd struct {
	client *client
	mu     sync.Mutex
	open   []*connection
	errs   []error
}

// join opens n connections from n/1000 or so addresses and has each begin with begin.
func (c *crowd) join(n int, begin func(i int, k *connection) error) {
	var dialling sync.WaitGroup
	slots := make(chan struct{}, dialsAtOnce)
	for i := range n {
		slots <- struct{}{}
		dialling.Go(func() {
			defer func() { <-slots }()
			k, err := c.client.dial(&net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i/1000))})
			if err == nil {
				err = begin(i, k)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			if err != nil {
				c.errs = append(c.errs, err)
				k.close()
				return
			}
			c.open = append(c.open, k)
		})
	}
	dialling.Wait()
}

// alive counts the connections that the node has not closed.
func (c *crowd) alive() (n int) {
	for _, k := range c.open {
		if err := k.conn.NetConn().SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
			continue
		}
		_, err := k.conn.NetConn().Read(make([]byte, 1))
		if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
			n++
		}
	}
	return n
}

func (c *crowd) leave() {
	for _, k := range c.open {
		_ = k.conn.NetConn().Close()
	}
}

// slowPart lets clients drip headers and bodies, and ask without reading the answers.
func slowPart(_ context.Context, o options, b *bench) error {
	before, err := lone(b.client, b.search, 20*time.Millisecond, o.phase/3)
	if err != nil {
		return err
	}
	c := &crowd{client: b.client}
	defer c.leave()
	stop := make(chan struct{})
	var dripping sync.WaitGroup
	defer dripping.Wait()
	defer close(stop)
	var beside sample
	w, err := b.node.while(func() error {
		c.join(o.slow, func(_ int, k *connection) error {
			return drip(&dripping, stop, k, "POST /v1.1/face/search HTTP/1.1\r\nX-Slow: ")
		})
		c.join(o.slow, func(_ int, k *connection) error { return dripBody(&dripping, stop, k) })
		c.join(o.slow, func(_ int, k *connection) error { return deaf(&dripping, k) })
		var err error
		beside, err = lone(b.client, b.search, 20*time.Millisecond, o.phase)
		return err
	})
	if err != nil {
		return err
	}
	return table.Print(o.out, fmt.Sprintf("Slow clients: %d drip headers, %d a body, %d don't read their answers", o.slow, o.slow, o.slow), []table.Row{
		{What: "a search at a time, p50 beside / without", Value: beside.ms(.5) / before.ms(.5), Unit: "×", Goal: slowDelayGoal, Most: true, About: beside.times() + "; without " + before.times()},
		{What: "p99 beside / without", Value: beside.ms(.99) / before.ms(.99), Unit: "×"},
		{What: "memory for each", Value: (w.mostMB - b.rssMB) * 1e3 / float64(max(1, len(c.open))), Unit: "KB", Goal: slowKBGoal, Most: true, About: fmt.Sprintf("%.0f MB at most; %d connections could not be made %v", w.mostMB, len(c.errs), firstOf(c.errs))},
		{What: "connections that the node has left open", Value: float64(c.alive()), Unit: "", About: fmt.Sprintf("of %d, after %v", len(c.open), w.elapsed.Round(time.Second))},
	})
}

func firstOf(errs []error) string {
	if len(errs) == 0 {
		return ""
	}
	return errs[0].Error()
}

// drip sends a byte now and then after head, until the node has enough of it.
func drip(work *sync.WaitGroup, stop <-chan struct{}, k *connection, head string) error {
	if _, err := io.WriteString(k.conn, head); err != nil {
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
				if _, err := k.conn.Write([]byte("A")); err != nil {
					return
				}
			}
		}
	})
	return nil
}

// dripBody begins a large request with a good signature and drips its body.
func dripBody(work *sync.WaitGroup, stop <-chan struct{}, k *connection) error {
	large := operation{target: "/v1.1/face/search", body: make([]byte, 10<<20), hash: sha256.Sum256(make([]byte, 10<<20))}
	head, err := k.client.head(large)
	if err != nil {
		return err
	}
	return drip(work, stop, k, head+strings.Repeat("A", 64<<10))
}

// deaf asks for a document again and again and never reads.
func deaf(work *sync.WaitGroup, k *connection) error {
	ask := "GET /openapi.json HTTP/1.1\r\nHost: " + k.client.host + "\r\n\r\n"
	if err := k.conn.NetConn().(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		return err
	}
	work.Go(func() {
		_ = k.conn.SetWriteDeadline(time.Now().Add(answerTimeout))
		for {
			if _, err := io.WriteString(k.conn, strings.Repeat(ask, 20)); err != nil {
				return
			}
		}
	})
	return nil
}
