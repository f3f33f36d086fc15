//go:build !chaos

package serve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"facet/cmd/facet/config"
	packs "facet/cmd/facet/models"
	"facet/engine/imaging"
	"facet/engine/models"
	"facet/node"
	"facet/node/datadir"
	"facet/node/placement"
)

// warmAfter is how long after the start a node compiles the HEIC decoder. Until then the cores are for
// its start, and for its log and its peers.
const warmAfter = time.Minute

// Pack returns the folder and the identity of the model pack that a node with this data
// directory serves with. dir is a pack or a folder of packs. Data may be empty.
func Pack(dir, data string) (folder, identity string, err error) {
	kept, err := kept(data)
	if err != nil {
		return "", "", err
	}
	return PackOf(dir, kept)
}

// PackOf returns the folder and the identity of the model pack in dir, or of the one of
// the packs there that has this identity (packs.Choose).
func PackOf(dir, identity string) (folder, id string, err error) {
	if folder, err = packs.Choose(dir, identity); err != nil {
		return "", "", err
	}
	pack, err := packs.Read(folder)
	if err != nil {
		return "", "", err
	}
	return folder, pack.ID, nil
}

// kept returns the identity of the pack that a node served with, or "" for a new node.
// Releases that had one pack only noted none.
func kept(data string) (string, error) {
	if data == "" {
		return "", nil
	}
	identity, used, err := datadir.Pack(data)
	if err != nil || identity != "" || !used {
		return identity, err
	}
	sum := sha256.Sum256(models.Default())
	return hex.EncodeToString(sum[:]), nil
}

// adopt notes the cluster's pack for a new node that began with another one. It reports
// whether the node can start again with the cluster's pack.
func adopt(s config.Settings, log *slog.Logger, err error) bool {
	other, ok := errors.AsType[*placement.PackError](err)
	if !ok {
		return false
	}
	folder, identity, err := PackOf(s.Models, other.Cluster)
	if err != nil || !strings.HasPrefix(identity, other.Cluster) {
		return false
	}
	if err := datadir.NotePack(s.Dir, identity); err != nil {
		log.Warn("the cluster's model pack can't be noted", "err", err)
		return false
	}
	log.Info("the cluster has another model pack than new clusters: this node starts again with it", "pack", folder)
	return true
}

// openFaces sets the face engine in a node's configuration. The caller closes it.
func openFaces(s config.Settings, cfg *node.Config) (closing func(), err error) {
	identity, err := kept(s.Dir)
	if err != nil {
		return nil, err
	}
	eng, err := packs.Source{Pack: s.Models, Identity: identity, ONNXRuntime: s.ONNXRuntime, SHA256: s.ONNXRuntimeSHA256, Workers: s.Workers}.Open()
	if err != nil {
		return nil, err
	}
	cfg.Pack, cfg.Extractor, cfg.Table, cfg.Spectrum = eng.Pack().ID, eng, eng.Table(), eng.Spectrum()
	if err := datadir.NotePack(s.Dir, eng.Pack().ID); err != nil {
		eng.Close()
		return nil, err
	}
	cfg.Log.Info("face engine", "pack", eng.Pack().ID[:12], "jpeg", imaging.JPEGDecoder())
	cool, err := imaging.Keep()
	if err != nil {
		cfg.Log.Warn("the compiled HEIC decoder can't be kept: each HEIC photo takes a second longer", "err", err)
		cool = func() error { return nil }
	}
	warming, stop := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() { warm(warming, cfg.Log) })
	return func() {
		stop()
		work.Wait()
		if err := cool(); err != nil {
			cfg.Log.Warn("the compiled HEIC decoder stays behind", "err", err)
		}
		eng.Close()
	}, nil
}

// warm compiles the HEIC decoder when the node's start is over. The first HEIC photo does so if it
// comes earlier.
func warm(ctx context.Context, log *slog.Logger) {
	select {
	case <-time.After(warmAfter):
	case <-ctx.Done():
		return
	}
	if err := imaging.Compile(ctx); err != nil && ctx.Err() == nil {
		log.WarnContext(ctx, "HEIC photos can't be decoded", "err", err)
	}
}
