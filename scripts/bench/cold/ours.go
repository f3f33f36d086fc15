package cold

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"facet/engine"
	"facet/engine/score"
	"facet/internal/id"
	"facet/shard"
	"facet/shard/kernel"
	"facet/shard/seal"
	"facet/shard/segment"
)

// freezeEvery is after how many events they go to segments.
const freezeEvery = 50_000

var gallery = id.Gallery{UUID: id.UUID{1}}

// ours is a shard whose sealed faces are in segments.
type ours struct {
	shard *shard.Shard
	arena *kernel.Arena
	key   *seal.Key
	dim   int
}

func newOurs(dir string, table *score.Table, s set, rows []float32) (*ours, error) {
	store, err := segment.Open(filepath.Join(dir, "segments"), segment.Options{})
	if err != nil {
		return nil, err
	}
	o := &ours{arena: kernel.NewArena(0), dim: s.Dim}
	if err := o.arena.Suit(s.Spectrum); err != nil {
		return nil, err
	}
	if o.key, err = seal.NewKey(make([]byte, seal.KeyBytes)); err != nil {
		return nil, err
	}
	o.shard = shard.New(table, o.arena)
	o.shard.Keep(store)
	n := len(rows) / s.Dim
	if err := o.shard.Grant(shard.Grant{Gallery: gallery, Generation: 1, Total: uint32(n)}); err != nil {
		return nil, err
	}
	for i := range n {
		if err := o.put(i, rows[i*s.Dim:][:s.Dim]); err != nil {
			return nil, err
		}
		if i%freezeEvery == freezeEvery-1 || i == n-1 {
			if err := o.freeze(); err != nil {
				return nil, err
			}
		}
	}
	return o, nil
}

func (o *ours) put(i int, template []float32) error {
	e := shard.Event{Gallery: gallery, Generation: 1, Time: int64(i)}
	// The order of the subjects is unrelated to the order of the rows.
	binary.BigEndian.PutUint32(e.Subject.UUID[:], uint32(i)*2654435761)
	binary.BigEndian.PutUint32(e.Event.UUID[:], uint32(i))
	ref := shard.FaceRef{Gallery: gallery, Generation: 1, Subject: e.Subject, Event: e.Event}
	e.Sealed = shard.SealFace(o.key, ref, engine.Face{Template: template})
	return o.shard.Put(e, shard.FreeSlots)
}

func (o *ours) freeze() error {
	v := o.shard.Freeze()
	defer v.Release()
	if _, err := v.Settle(segment.Share); err != nil {
		return err
	}
	v.Adopt()
	return nil
}

// open opens all templates.
func (o *ours) open(ctx context.Context) error { return o.shard.Warm(ctx, gallery, 1, o.key) }

// chill leaves all exact rows on disk that can be, and returns their share.
func (o *ours) chill(rows int) float64 {
	for o.shard.Chill() > 0 {
	}
	return float64(o.shard.ColdRows()) / float64(rows)
}

// search searches with all probes.
func (o *ours) search(ctx context.Context, probes []float32, k kind, together int) (a answer, err error) {
	n := len(probes) / o.dim
	a.Hits = make([][][2]int, n)
	failed := make([]error, n)
	begin := time.Now()
	var work sync.WaitGroup
	for w := range together {
		work.Go(func() {
			for i := w; i < n; i += together {
				var hits []shard.Hit
				hits, failed[i] = o.shard.Search(ctx, gallery, 1, o.key, shard.Query{Probe: probes[i*o.dim:][:o.dim], Limit: k.limit, Threshold: k.threshold})
				for _, h := range hits {
					a.Hits[i] = append(a.Hits[i], [2]int{int(binary.BigEndian.Uint32(h.Event.UUID[:])), h.Score})
				}
			}
		})
	}
	work.Wait()
	a.MS = time.Since(begin).Seconds() * 1e3 / float64(n)
	return a, errors.Join(failed...)
}

func (o *ours) close() error {
	o.shard.Close()
	if err := o.arena.Close(); err != nil {
		return fmt.Errorf("close the arena: %w", err)
	}
	return nil
}
