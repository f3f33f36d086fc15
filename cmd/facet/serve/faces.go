//go:build !chaos

package serve

import (
	"context"
	"sync"

	"facet/cmd/facet/config"
	packs "facet/cmd/facet/models"
	"facet/engine/imaging"
	"facet/node"
)

// Pack returns the identity of the model pack in a folder.
func Pack(dir string) (string, error) {
	pack, err := packs.Read(dir)
	if err != nil {
		return "", err
	}
	return pack.ID, nil
}

// openFaces sets the face engine in a node's configuration. The caller closes it.
func openFaces(s config.Settings, cfg *node.Config) (closing func(), err error) {
	eng, err := packs.Source{Pack: s.Models, ONNXRuntime: s.ONNXRuntime, SHA256: s.ONNXRuntimeSHA256, Workers: s.Workers}.Open()
	if err != nil {
		return nil, err
	}
	cfg.Pack, cfg.Extractor, cfg.Table, cfg.Spectrum = eng.Pack().ID, eng, eng.Table(), eng.Spectrum()
	cfg.Log.Info("face engine", "pack", eng.Pack().ID[:12], "jpeg", imaging.JPEGDecoder())
	warming, stop := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() {
		cool, err := imaging.Warm(warming)
		if err != nil {
			if warming.Err() == nil {
				cfg.Log.Warn("HEIC photos can't be decoded, or only slowly", "err", err)
			}
			return
		}
		<-warming.Done()
		if err := cool(); err != nil {
			cfg.Log.Warn("the compiled HEIC decoder stays behind", "err", err)
		}
	})
	return func() {
		stop()
		work.Wait()
		eng.Close()
	}, nil
}
