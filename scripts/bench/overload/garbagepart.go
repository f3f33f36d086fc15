//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"facet/scripts/bench/table"
)

const (
	garbageGoal = 100 // µs of processor time
	largeBytes  = 16 << 20
	handshakers = 16
)

// garbagePart measures what requests cost that are refused, and handshakes.
func garbagePart(ctx context.Context, o options, b *bench) error {
	small, err := newOperation("/v1.1/face/search", map[string]any{"probe": strings.Repeat("A", 600)})
	if err != nil {
		return err
	}
	nobody := b.client.forged()
	nobody.signer.AccessKey = strings.Repeat("X", len(nobody.signer.AccessKey))
	idle, err := b.node.while(func() error { time.Sleep(o.phase / 5); return ctx.Err() })
	if err != nil {
		return err
	}
	rest := idle.cpu.Seconds() / idle.elapsed.Seconds() // what the node takes when nobody asks
	var rows []table.Row
	for _, g := range []struct {
		name   string
		client *client
		atOnce int
	}{
		{"a wrong signature", b.client.forged(), 8},
		// They wait for one another, so that the cluster is asked once for many.
		{"an unknown access key", nobody, 64},
	} {
		var t *tally
		w, err := b.node.while(func() error { t = closed(g.client, small, g.atOnce, o.phase/3); return ctx.Err() })
		if err != nil {
			return err
		}
		if n := t.others[fmt.Sprint(http.StatusForbidden)]; n == 0 || n != t.sum() {
			return fmt.Errorf("%s: %d requests, %v, %w", g.name, t.sum(), t.others, t.firstBad)
		}
		rows = append(rows, table.Row{
			What: g.name, Value: (w.cpu.Seconds() - rest*w.elapsed.Seconds()) * 1e6 / float64(t.sum()), Unit: "µs", Goal: garbageGoal, Most: true,
			About: fmt.Sprintf("%.0f a second; %.1f %% of a core without them", float64(t.sum())/t.elapsed.Seconds(), 100*rest),
		})
	}
	large, err := largeWhileBusy(ctx, o, b)
	if err != nil {
		return err
	}
	shake, err := handshakes(o, b)
	if err != nil {
		return err
	}
	return table.Print(o.out, "Processor time of the node for a request that it refuses (TLS and all), and for a connection", append(rows, large, shake))
}

// largeWhileBusy sends 16 MB bodies to a node that is busy.
func largeWhileBusy(ctx context.Context, o options, b *bench) (r table.Row, err error) {
	large, err := newOperation("/v1.1/face/search", map[string]any{"probe": strings.Repeat("A", largeBytes)})
	if err != nil {
		return r, err
	}
	var flood, after *tally
	var work sync.WaitGroup
	work.Go(func() { flood = open(ctx, b.client, b.search, 3*b.best, o.phase/2) })
	time.Sleep(o.phase / 10)
	t := closed(b.client, large, 1, o.phase/3)
	work.Wait()
	after = closed(b.client, b.search, 4, o.phase/5)
	if len(t.refused) == 0 {
		return r, fmt.Errorf("no 16 MB body was refused: %d served, %v, %w", len(t.good), t.others, t.firstBad)
	}
	return table.Row{
		What: "16 MB to a busy node: refused after, p50", Value: t.refused.ms(.5), Unit: "ms",
		About: fmt.Sprintf("%s; meanwhile served %.2f × of the best throughput, %.2f × afterwards; %v", t.refused.times(), flood.rate()/b.best, after.rate()/b.best, t.others),
	}, nil
}

// handshakes opens and closes connections as fast as it can.
func handshakes(o options, b *bench) (table.Row, error) {
	fresh := &client{tls: b.client.tls.Clone(), host: b.client.host}
	fresh.tls.ClientSessionCache = nil
	var beside sample
	n, errs := make([]int, handshakers), make([]error, handshakers+1)
	var work sync.WaitGroup
	w, err := b.node.while(func() error {
		began := time.Now()
		for i := range handshakers {
			work.Go(func() {
				for time.Since(began) < o.phase/3 {
					k, err := fresh.dial(nil)
					if err != nil {
						errs[i] = err
						return
					}
					k.close()
					n[i]++
				}
			})
		}
		beside, errs[handshakers] = lone(b.client, b.search, 0, o.phase/3)
		work.Wait()
		return errors.Join(errs...)
	})
	total := 0
	for _, m := range n {
		total += m
	}
	return table.Row{
		What: "a handshake", Value: (w.cpu.Seconds() - float64(len(beside))/b.best) * 1e6 / float64(max(1, total)), Unit: "µs",
		About: fmt.Sprintf("%.0f a second; a search at a time meanwhile: %s", float64(total)/w.elapsed.Seconds(), beside.times()),
	}, err
}
