package engine

import (
	"bytes"
	"context"
	"slices"

	"facet/engine/imaging"
)

// The most boxes of an image that are measured; see worker.candidates.
const (
	CandidatesMax = candidatesMax
	JoinedMax     = joinedMax
)

// Candidates returns how many boxes of an image a worker measures.
func (e *Engine) Candidates() int {
	w := <-e.workers
	defer func() { e.workers <- w }()
	return w.candidates()
}

// Occupy takes a worker until release is called.
func (e *Engine) Occupy() (release func()) {
	w := <-e.workers
	return func() { e.workers <- w }
}

// ReleaseNow frees memory if the releaser is going to, and reports whether it was.
func (e *Engine) ReleaseNow() bool {
	due := e.releaser.pending.Load()
	if due {
		e.releaser.free()
	}
	return due
}

// Kept returns the memory that an idle worker keeps for the next image.
func (e *Engine) Kept() (pixels [][]uint8, values [][]float32) {
	w := <-e.workers
	defer func() { e.workers <- w }()
	pixels = append(pixels, w.pyramid.image.Pix[:cap(w.pyramid.image.Pix)])
	for _, s := range w.stages() {
		pixels = append(pixels, s.crop.Pix)
		values = append(values, s.run.Input(), s.run.Output(0))
	}
	if w.joiner != nil {
		values = append(values, w.joiner.values)
	}
	return pixels, append(values, w.luma)
}

// Seen extracts the faces of an image and returns what each network got last: the crop and the
// input.
func (e *Engine) Seen(data []byte) (crops [][]uint8, inputs [][]float32, err error) {
	w := <-e.workers
	defer func() { e.workers <- w }()
	head, err := imaging.DecodeConfig(data)
	if err != nil {
		return nil, nil, err
	}
	x := &extraction{e: e, memory: lease{from: e.memory, most: e.memoryBytes}}
	defer x.memory.end()
	defer w.forget()
	w.pause = x.pause
	if err := w.pyramid.open(context.Background(), &x.memory, head, data, w.firstShrink(head)); err != nil {
		return nil, nil, err
	}
	if _, err := w.find(context.Background(), search{tiles: true}); err != nil {
		return nil, nil, err
	}
	for _, s := range w.stages() {
		crops = append(crops, bytes.Clone(s.crop.Pix))
		inputs = append(inputs, slices.Clone(s.run.Input()))
	}
	return crops, inputs, nil
}
