package service

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"sync"
	"syscall"

	"github.com/spf13/pflag"

	"facet/cmd/facet/config"
	"facet/cmd/facet/serve"
	"facet/engine"
	"facet/node"
	"facet/scripts/bench/cluster"
)

// The signals that start and end a profile of a node, and the profile's file in the
// node's data folder. The file appears when it is complete.
const (
	beginProfile = syscall.SIGUSR1
	endProfile   = syscall.SIGUSR2
	profileFile  = "bench-service.pprof"
)

// Serve runs a facet node with two additions: it accepts templates as probes, and it
// writes profiles when it gets a signal.
func Serve(args []string) error {
	flags := pflag.NewFlagSet(cluster.ServeCommand, pflag.ContinueOnError)
	config.Flags(flags)
	if err := flags.Parse(args); err != nil {
		return err
	}
	s, err := config.Load(flags, os.Environ())
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var profiles sync.WaitGroup
	defer profiles.Wait()
	defer stop()
	profiles.Go(func() { profile(ctx, filepath.Join(s.Dir, profileFile)) })
	return serve.RunWith(ctx, s, os.Stderr, func(c *node.Config) {
		c.Extractor = prober{c.Extractor.(*engine.Engine)}
	})
}

// profile writes profiles until ctx ends.
func profile(ctx context.Context, name string) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, beginProfile, endProfile)
	var f *os.File
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case s := <-signals:
			switch {
			case s == beginProfile && f == nil:
				if f, err = os.Create(name + ".new"); err == nil {
					err = pprof.StartCPUProfile(f)
				}
			case s == endProfile && f != nil:
				pprof.StopCPUProfile()
				err = errors.Join(f.Close(), os.Rename(f.Name(), name))
				f = nil
			}
		}
		if err != nil {
			slog.ErrorContext(ctx, "profile", "err", err)
		}
	}
}

// probeHead is the head of an "image" that is a template. Little-endian float32 follow
// it.
const probeHead = "bench-service template\n"

// probeImage returns a template as such an image.
func probeImage(t engine.Template) []byte {
	b := []byte(probeHead)
	for _, x := range t {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// prober is an engine that accepts these images.
type prober struct{ *engine.Engine }

// ExtractLarge returns the template in such an image, or calls the engine for any other
// image (router.Extractor).
func (p prober) ExtractLarge(ctx context.Context, image []byte, share float32) ([]engine.Face, error) {
	if len(image) < len(probeHead) || string(image[:len(probeHead)]) != probeHead {
		return p.Engine.ExtractLarge(ctx, image, share)
	}
	b := image[len(probeHead):]
	if len(b) != 4*p.Dim() {
		return nil, fmt.Errorf("%w: a template of %d bytes", engine.ErrImage, len(b))
	}
	t := make(engine.Template, p.Dim())
	for i := range t {
		t[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return []engine.Face{{Template: t, Model: p.Pack().Manifest.ModelID(), Attributes: engine.Attributes{Quality: 1}}}, nil
}
