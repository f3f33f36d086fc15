package engine

import (
	"context"
	"math/bits"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"facet/engine/imaging"
)

// picture is the image that a worker looks at. It is decoded first as small as a guess allows, and
// once more, larger, when a model needs a closer look. Decoding at half the scale takes two thirds
// of the time and a quarter of the memory. A model sees the same, since a pyramid would halve the
// image anyway. Positions are always those of the whole upright image.
type picture struct {
	frame   imaging.Image // size of the whole image, without pixels
	shrink  imaging.Shrink
	shrunk  imaging.Affine // from the whole image to the decoded one
	image   imaging.Image  // as decoded; reused for the next image
	pyramid imaging.Pyramid
	decoded *[4]atomic.Int64 // by binary logarithm of the shrink
	// decode decodes the image again at another scale; nil between two extractions.
	decode func(s imaging.Shrink) error
}

// open decodes data, whose head is given, in memory taken from mem.
func (p *picture) open(ctx context.Context, mem *lease, head imaging.Config, data []byte, first imaging.Shrink) error {
	p.frame.Width, p.frame.Height = head.Upright()
	p.decode = func(s imaging.Shrink) error {
		if err := mem.raise(ctx, head.Bytes(s)); err != nil {
			return err
		}
		if err := head.DecodeInto(ctx, &p.image, data, s); err != nil {
			return err
		}
		p.decoded[bits.TrailingZeros(uint(s))].Add(1)
		p.shrink, p.shrunk = s, head.Shrunk(s)
		p.pyramid.Reset(&p.image)
		return ctx.Err()
	}
	return p.decode(first)
}

// close ends the extraction, clears the pixels and drops the memory of a large image.
func (p *picture) close() {
	p.decode = nil
	p.image.Clear()
	p.pyramid.Clear()
	if cap(p.image.Pix) > keepBytes {
		p.image = imaging.Image{}
		p.pyramid.Free()
	}
}

// Image returns the whole image's size, without pixels.
func (p *picture) Image() *imaging.Image { return &p.frame }

// need decodes the image larger if an output pixel of scale image pixels would be smaller than a
// decoded pixel.
func (p *picture) need(scale float64) error {
	if s := coarsest(scale); s < p.shrink {
		return p.decode(s)
	}
	return nil
}

// sample is imaging.Pyramid.Sample with m mapping to the whole image.
func (p *picture) sample(dst *imaging.Image, m imaging.Affine, edge imaging.Edge) error {
	if err := p.need(m.Scale()); err != nil {
		return err
	}
	p.pyramid.Sample(dst, p.shrunk.After(m), edge)
	return nil
}

// coarsest returns the largest shrink that is at most scale.
func coarsest(scale float64) imaging.Shrink {
	s := imaging.Eighth
	for s > imaging.Whole && scale < float64(s) {
		s /= 2
	}
	return s
}

// lease is a part of the memory that all images share.
type lease struct {
	from *semaphore.Weighted
	most int64 // the whole memory
	held int64
}

// raise raises the lease to n bytes, or to the whole memory. It waits without holding any memory,
// or two leases could wait for each other for ever.
func (l *lease) raise(ctx context.Context, n int64) error {
	n = min(n, l.most)
	if n <= l.held || l.from.TryAcquire(n-l.held) {
		l.held = max(l.held, n)
		return nil
	}
	l.end()
	if err := l.from.Acquire(ctx, n); err != nil {
		return err
	}
	l.held = n
	return nil
}

func (l *lease) end() {
	l.from.Release(l.held)
	l.held = 0
}
