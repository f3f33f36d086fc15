package service

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"facet/engine"
	"facet/router"
	"facet/scripts/bench/fill"
	"facet/scripts/bench/https"
	"facet/shard/kernel"
	"facet/shard/scan"
)

const (
	probeCount = 64
	// probeShare is the share of its template in a mated probe. It is about what two
	// photos of one person have in common.
	probeShare = .49
	matedEvery = 2 // one probe in matedEvery is mated
)

// probe is a template to search with, and the expected answer.
type probe struct {
	template engine.Template
	want     []scan.Hit
}

// kernelPart is the search kernel with the templates of all shards and nothing around
// it. Like the nodes together, it has one copy of the templates for each node, and
// searches the copies in turn. A single copy might stay in the processor's cache, which
// all copies together do not.
type kernelPart struct {
	b      *bench
	arena  *kernel.Arena
	owners kernel.OwnerList
	copies []shards
	turn   atomic.Int64
	rows   int
	probes []probe
}

// shards has the matrices of one copy.
type shards struct {
	matrices []*kernel.Matrix
	queues   []*kernel.Queue
}

// openKernel puts the templates of the gallery into matrices, one for each shard.
func (b *bench) openKernel() error {
	k := &kernelPart{b: b, arena: kernel.NewArena(0)}
	b.kernel = k
	if b.gallery.Filled.Spectrum != nil {
		if err := k.arena.Suit(b.gallery.Filled.Spectrum); err != nil {
			return err
		}
	}
	for range b.shape.Nodes {
		copied, err := k.open()
		if err != nil {
			return err
		}
		k.copies = append(k.copies, copied)
	}
	for i := range k.probes {
		var err error
		if k.probes[i].want, err = k.search(context.Background(), k.probes[i].template); err != nil {
			return err
		}
	}
	return nil
}

// open makes one copy. For the first copy it also makes the probes.
func (k *kernelPart) open() (s shards, err error) {
	random := rand.New(rand.NewPCG(2, 0)) //nolint:gosec // the same probes in each run
	step := max(k.b.events/probeCount, 1)
	registered := kernel.Owner{Subject: k.b.gallery.Subject, Event: k.b.gallery.Event}
	k.rows = 0
	for i, part := range k.b.gallery.Filled.Shards {
		m, err := kernel.New(k.arena, k.b.gallery.Filled.Dim, &k.owners)
		if err != nil {
			return s, err
		}
		s.matrices, s.queues = append(s.matrices, m), append(s.queues, kernel.NewQueue(m, k.b.engine.Table(), runtime.GOMAXPROCS(0)))
		if i == 0 { // the place of the registered event changes nothing
			if err := k.add(m, registered, k.b.face.Template); err != nil {
				return s, err
			}
		}
		for e, t := range k.b.gallery.Filled.Rows(part, k.b.face.Template) {
			if err := k.add(m, kernel.Owner{Subject: e.Subject, Event: e.Event}, t); err != nil {
				return s, err
			}
			if k.rows%step == 0 && len(k.probes) < probeCount {
				k.probes = append(k.probes, probe{template: k.newProbe(random, t)})
			}
		}
	}
	return s, nil
}

func (k *kernelPart) add(m *kernel.Matrix, o kernel.Owner, t engine.Template) error {
	k.rows++
	_, err := m.Add(k.owners.Add(&o, nil), t)
	return err
}

// newProbe alternately returns a probe of a stranger and a probe of the person of t.
func (k *kernelPart) newProbe(random *rand.Rand, t engine.Template) engine.Template {
	scale := make([]float64, len(t))
	for i := range scale {
		if scale[i] = 1; k.b.gallery.Filled.Spectrum != nil {
			scale[i] = math.Sqrt(k.b.gallery.Filled.Spectrum[i])
		}
	}
	p := fill.Random(random, scale)
	if len(k.probes)%matedEvery != 0 {
		return p
	}
	var squares float64
	for i := range p {
		p[i] = float32(math.Sqrt(1-probeShare))*p[i] + float32(math.Sqrt(probeShare))*t[i]
		squares += float64(p[i]) * float64(p[i])
	}
	for i := range p {
		p[i] /= float32(math.Sqrt(squares))
	}
	return p
}

func query(t engine.Template) scan.Query {
	return scan.Query{Probe: t, Limit: router.SearchLimitDefault, Threshold: router.ThresholdDefault}
}

// search searches all shards at once and merges the hits, as the router does.
func (k *kernelPart) search(ctx context.Context, t engine.Template) ([]scan.Hit, error) {
	turn := k.turn.Add(1)
	lists := make([][]scan.Hit, len(k.copies[0].queues))
	work, ctx := errgroup.WithContext(ctx)
	for i := range lists {
		queue := k.copies[(int(turn)+i)%len(k.copies)].queues[i]
		work.Go(func() (err error) {
			lists[i], err = queue.Search(ctx, query(t))
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return nil, err
	}
	hits := slices.Concat(lists...)
	slices.SortFunc(hits, scan.Compare)
	return hits[:min(len(hits), router.SearchLimitDefault)], nil
}

// searchAlone searches one shard after the other, on one core.
func (k *kernelPart) searchAlone(t engine.Template) error {
	turn := k.turn.Add(1)
	for i := range k.copies[0].matrices {
		if _, err := k.copies[(int(turn)+i)%len(k.copies)].matrices[i].Search(k.b.engine.Table(), query(t)); err != nil {
			return err
		}
	}
	return nil
}

// check compares an answer of the service with the kernel's answer.
func (p *probe) check(a https.Answer) error {
	if len(p.want) == 0 {
		if a.Status != http.StatusNotFound {
			return fmt.Errorf("a search for a stranger is answered %d %s", a.Status, a.Body)
		}
		return nil
	}
	if a.Status != http.StatusOK {
		return fmt.Errorf("a search is answered %d %s", a.Status, a.Body)
	}
	for _, h := range p.want {
		for _, text := range []string{h.Subject.String(), h.Event.String()} {
			if !bytes.Contains(a.Body, []byte(`"`+text+`"`)) {
				return fmt.Errorf("a search is answered without %s: %s", text, a.Body)
			}
		}
	}
	return nil
}

func (k *kernelPart) close() error {
	for _, s := range k.copies {
		for _, m := range s.matrices {
			m.Free()
		}
	}
	return k.arena.Close()
}
