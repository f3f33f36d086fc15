package engine

import "facet/engine/imaging"

// Kept returns the memory that an idle worker keeps for the next image.
func (e *Engine) Kept() (pixels [][]uint8, values [][]float32) {
	w := <-e.workers
	defer func() { e.workers <- w }()
	keep := func(im *imaging.Image) { pixels = append(pixels, im.Pix[:cap(im.Pix)]) }
	keep(&w.pyramid.image)
	for _, s := range []*stage{&w.detector, &w.landmarks, &w.embedder} {
		keep(s.crop)
		values = append(values, s.run.Input())
	}
	return pixels, append(values, w.luma)
}
