package engine

import (
	"context"
	"math/bits"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"facet/engine/imaging"
)

// picture is the image that a worker looks at. It is decoded as small as a first
// guess allows, and once more, larger, when a model needs a closer look: decoding
// at half the scale takes two thirds of the time and a quarter of the memory, and
// a model sees the same, since a pyramid would halve the image anyway. Positions
// are always those of the whole upright image.
type picture struct {
	frame   imaging.Image // the whole image's size, no pixels
	shrink  imaging.Shrink
	shrunk  imaging.Affine // from the whole image to what was decoded
	image   imaging.Image  // what was decoded; its memory serves the next
	pyramid imaging.Pyramid
	decoded *[4]atomic.Int64 // counts, by binary logarithm of the shrink
	// decode decodes image again, at another scale; nil between two extractions.
	decode func(s imaging.Shrink) error
}

// open decodes data, whose head is given. It takes the memory for it from mem.
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

// close ends the extraction, and lets go of the memory of a large image.
func (p *picture) close() {
	p.decode = nil
	if len(p.image.Pix) > keepBytes {
		p.image = imaging.Image{}
		p.pyramid.Free()
	}
}

// Image returns the whole image's size; it has no pixels.
func (p *picture) Image() *imaging.Image { return &p.frame }

// need decodes the image larger if one output pixel of scale of its pixels would
// be less than one of what was decoded.
func (p *picture) need(scale float64) error {
	if s := coarsest(scale); s < p.shrink {
		return p.decode(s)
	}
	return nil
}

// sample is imaging.Pyramid.Sample, m mapping to the whole image.
func (p *picture) sample(dst *imaging.Image, m imaging.Affine, edge imaging.Edge) error {
	if err := p.need(m.Scale()); err != nil {
		return err
	}
	p.pyramid.Sample(dst, p.shrunk.After(m), edge)
	return nil
}

// coarsest returns the largest divisor that scale is not below.
func coarsest(scale float64) imaging.Shrink {
	s := imaging.Eighth
	for s > imaging.Whole && scale < float64(s) {
		s /= 2
	}
	return s
}

// lease is a piece of the memory that all images share.
type lease struct {
	from *semaphore.Weighted
	most int64 // all that there is
	held int64
}

// raise makes the lease n bytes, or all there is, unless it is more already. What
// it waits for, it waits for without holding any, or two that wait for each other
// would wait for ever.
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
