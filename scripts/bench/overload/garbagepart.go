package overload

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"facet/scripts/bench/https"
	"facet/scripts/bench/load"
	"facet/scripts/bench/machine"
	"facet/scripts/bench/table"
)

const (
	garbageGoal = 100 // µs of processor time
	largeBytes  = 16 << 20
	handshakers = 16
)

// garbagePart measures the cost of refused requests and of handshakes.
func (b *bench) garbagePart(ctx context.Context) error {
	small, err := https.NewOperation(https.SearchPath, map[string]any{"probe": strings.Repeat("A", 600)})
	if err != nil {
		return err
	}
	signer := b.client.Signer
	forged := b.sign(signer.AccessKey, strings.Repeat("0", len(signer.SecretKey)))
	nobody := b.sign(strings.Repeat("X", len(signer.AccessKey)), signer.SecretKey)
	idle, err := b.watch(func() error { time.Sleep(b.phase / 5); return ctx.Err() })
	if err != nil {
		return err
	}
	rest := idle.CPU.Seconds() / idle.Elapsed.Seconds() // what the idle node takes
	var rows []table.Row
	for _, g := range []struct {
		name   string
		client *https.Client
		atOnce int
	}{
		{"a wrong signature", forged, 8},
		// The requests wait for one another, so the node asks the cluster once for
		// many.
		{"an unknown access key", nobody, 64},
	} {
		var t *load.Tally
		s := load.NewSource(g.client, g.client.URL)
		w, err := b.watch(func() error { t = s.Closed(ctx, small, g.atOnce, b.phase/3); return ctx.Err() })
		s.Close()
		if err != nil {
			return err
		}
		// After some failures the node answers 429 instead of 403.
		if n := t.Others[fmt.Sprint(http.StatusForbidden)]; n == 0 || n+len(t.Refused) != t.Sum() {
			return fmt.Errorf("%s: %d requests, %v, %w", g.name, t.Sum(), t.Others, t.FirstBad)
		}
		rows = append(rows, table.Row{
			What: g.name, Value: (w.CPU.Seconds() - rest*w.Elapsed.Seconds()) * 1e6 / float64(t.Sum()), Unit: "µs", Goal: garbageGoal, Most: true,
			About: fmt.Sprintf("%.0f a second; %.1f %% of a core without them", float64(t.Sum())/t.Elapsed.Seconds(), 100*rest),
		})
	}
	large, err := b.largeWhileBusy(ctx)
	if err != nil {
		return err
	}
	shake, err := b.handshakes()
	if err != nil {
		return err
	}
	return table.Print(b.out, "Processor time of the node for a request that it refuses (TLS and all), and for a connection", append(rows, large, shake))
}

// sign returns the tenant's client with another access key and secret.
func (b *bench) sign(accessKey, secret string) *https.Client {
	return &https.Client{Client: *b.client.Keyed(accessKey, secret), URL: b.client.URL, TLS: b.client.TLS}
}

// largeWhileBusy sends 16 MB bodies to a busy node.
func (b *bench) largeWhileBusy(ctx context.Context) (r table.Row, err error) {
	large, err := https.NewOperation(https.SearchPath, map[string]any{"probe": strings.Repeat("A", largeBytes)})
	if err != nil {
		return r, err
	}
	flood := new(load.Tally)
	var work sync.WaitGroup
	work.Go(func() { b.flood(ctx, flood, 3*b.best, b.phase/2) })
	time.Sleep(b.phase / 10)
	t := b.source.Closed(ctx, large, 1, b.phase/3)
	work.Wait()
	after := b.source.Closed(ctx, b.search, 4, b.phase/5)
	if len(t.Refused) == 0 {
		return r, fmt.Errorf("no 16 MB body was refused: %d served, %v, %w", len(t.Good), t.Others, t.FirstBad)
	}
	return table.Row{
		What: "16 MB to a busy node: refused after, p50", Value: t.Refused.MS(.5), Unit: "ms",
		About: fmt.Sprintf("%s; meanwhile served %.2f × of the best throughput, %.2f × afterwards; %v", t.Refused.Times(), flood.Rate()/b.best, after.Rate()/b.best, t.Others),
	}, nil
}

// handshakes opens and closes connections as fast as possible.
func (b *bench) handshakes() (table.Row, error) {
	fresh := &https.Client{URL: b.client.URL, TLS: b.client.TLS.Clone()}
	fresh.TLS.ClientSessionCache = nil
	var beside machine.Sample
	n, errs := make([]int, handshakers), make([]error, handshakers+1)
	var work sync.WaitGroup
	w, err := b.watch(func() error {
		began := time.Now()
		for i := range handshakers {
			work.Go(func() {
				for time.Since(began) < b.phase/3 {
					k, err := fresh.Dial(fresh.URL, nil)
					if err != nil {
						errs[i] = err
						return
					}
					k.Close()
					n[i]++
				}
			})
		}
		beside, errs[handshakers] = b.alone(0, b.phase/3)
		work.Wait()
		return errors.Join(errs...)
	})
	total := 0
	for _, m := range n {
		total += m
	}
	return table.Row{
		What: "a handshake", Value: (w.CPU.Seconds() - float64(len(beside))/b.best) * 1e6 / float64(max(1, total)), Unit: "µs",
		About: fmt.Sprintf("%.0f a second; a search at a time meanwhile: %s", float64(total)/w.Elapsed.Seconds(), beside.Times()),
	}, err
}
