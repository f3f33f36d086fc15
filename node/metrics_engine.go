package node

import (
	"context"
	"errors"
	"time"

	"facet/engine"
	"facet/engine/imaging"
	"facet/node/limits"
	"facet/node/metrics"
	"facet/router"
)

// metered is an extractor that counts its images (router.Extractor).
type metered struct {
	router.Extractor
	work *metrics.Work
}

// Extract finds all faces.
func (m metered) Extract(ctx context.Context, image []byte) ([]engine.Face, error) {
	begin := time.Now()
	faces, err := m.Extractor.Extract(ctx, image)
	m.count(begin, err)
	return faces, err
}

// ExtractLarge finds the largest faces.
func (m metered) ExtractLarge(ctx context.Context, image []byte, share float32) ([]engine.Face, error) {
	begin := time.Now()
	faces, err := m.Extractor.ExtractLarge(ctx, image, share)
	m.count(begin, err)
	return faces, err
}

func (m metered) count(begin time.Time, err error) {
	outcome := metrics.ImageFault
	switch {
	case err == nil:
		outcome = metrics.ImageOK
	case errors.Is(err, engine.ErrBusy):
		outcome = metrics.ImageBusy
	case errors.Is(err, engine.ErrImage):
		outcome = metrics.ImageBad
	}
	m.work.Image(outcome, time.Since(begin))
}

// readEngine reads the queue and the counters of the engine, if it has them.
func readEngine(n *Node, to send) {
	extractor := n.cfg.Extractor
	if t, ok := extractor.(limits.Queue); ok {
		to(metrics.ImagesWait, float64(t.Waiting()))
		to(metrics.ImagesWaitLimit, float64(t.Limit()))
		extractor = t.Extractor
	}
	if e, ok := extractor.(interface{ Work() engine.Work }); ok {
		w := e.Work()
		to(metrics.ModelRuns, float64(w.Detector), "detector")
		to(metrics.ModelRuns, float64(w.Landmarks), "landmarks")
		to(metrics.ModelRuns, float64(w.Embedder+w.Second), "embedder")
	}
	to(metrics.EngineInfo, 1, imaging.JPEGDecoder())
}
