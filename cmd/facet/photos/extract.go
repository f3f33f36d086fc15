package photos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"facet/engine"
	"facet/engine/accuracy"
	"facet/engine/imaging"
)

// Extracted contains the results of the engine, in the order of the photographs.
type Extracted struct {
	Samples []accuracy.Sample
	// Templates has nil for a photograph that was not acquired.
	Templates []engine.Template
	// Faceless counts the photographs without a face, Unreadable the files that are no
	// image, and Poor the photographs with a quality below qualityMin.
	Faceless, Unreadable, Poor int
}

// Failed returns the number of photographs that were not acquired.
func (x *Extracted) Failed() int { return x.Faceless + x.Unreadable + x.Poor }

// Extract extracts the face nearest to the middle of every photograph, because
// other persons may be on it too. It does not acquire a photograph without a face,
// one that is no image, and one whose face has less than qualityMin. If screen is a
// terminal it shows the progress; screen may be nil.
func Extract(ctx context.Context, e *engine.Engine, photos []Photo, qualityMin float64, screen *os.File) (*Extracted, error) {
	x := &Extracted{Samples: make([]accuracy.Sample, len(photos)), Templates: make([]engine.Template, len(photos))}
	show := newProgress(screen, len(photos))
	var next, faceless, unreadable, poor atomic.Int64
	workers, ctx := errgroup.WithContext(ctx)
	for range min(runtime.GOMAXPROCS(0), workersMax) {
		workers.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(photos) {
					return nil
				}
				face, err := middleFace(ctx, e, photos[i].File)
				x.Samples[i] = accuracy.Sample{Person: photos[i].Person}
				switch {
				case errors.Is(err, errFaceless):
					faceless.Add(1)
				case errors.Is(err, engine.ErrImage):
					unreadable.Add(1)
				case err != nil:
					return err
				case float64(face.Attributes.Quality) < qualityMin:
					poor.Add(1)
				default:
					x.Samples[i].Acquired, x.Samples[i].Quality = true, face.Attributes.Quality
					x.Templates[i] = face.Template
				}
				show.add()
			}
		})
	}
	err := workers.Wait()
	show.close()
	if err != nil {
		return nil, fmt.Errorf("extract: %w", err)
	}
	x.Faceless, x.Unreadable, x.Poor = int(faceless.Load()), int(unreadable.Load()), int(poor.Load())
	return x, nil
}

var errFaceless = errors.New("there is no face on the photograph")

// workersMax is the most photographs that wait for the engine.
const workersMax = 64

func middleFace(ctx context.Context, e *engine.Engine, file string) (engine.Face, error) {
	data, err := readPhoto(file)
	if err != nil {
		return engine.Face{}, err
	}
	found, err := e.ExtractLarge(ctx, data, 0)
	switch {
	case err != nil:
		return engine.Face{}, err
	case len(found) == 0:
		return engine.Face{}, errFaceless
	case len(found) == 1:
		return found[0], nil
	}
	im, err := imaging.Decode(data) // upright, like the faces
	if err != nil {
		return engine.Face{}, fmt.Errorf("%w: %w", engine.ErrImage, err)
	}
	far := func(f engine.Face) float64 {
		r := f.Attributes.Face
		dx, dy := r.Left+r.Right-float32(im.Width), r.Top+r.Bottom-float32(im.Height)
		return math.Hypot(float64(dx), float64(dy)) / float64(r.Right-r.Left)
	}
	return slices.MinFunc(found, func(a, b engine.Face) int { return cmp.Compare(far(a), far(b)) }), nil
}

func readPhoto(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read photograph: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, photoBytesMax+1))
	if err != nil {
		return nil, fmt.Errorf("read photograph: %w", err)
	}
	if len(data) > photoBytesMax {
		return nil, fmt.Errorf("read photograph: %w: more than %d MiB", engine.ErrImage, photoBytesMax>>20)
	}
	return data, nil
}
