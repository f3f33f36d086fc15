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
	"facet/engine/portrait"
)

// Extracted contains the results of the engine, in the order of the photographs.
type Extracted struct {
	Samples []accuracy.Sample
	// Templates has nil for a photograph that was not acquired.
	Templates []engine.Template
	// Faceless counts the photographs without a face, Unreadable the files that are no
	// image, Poor the photographs with a quality below the least or a defect, and Several those of
	// several faces none of which is taken.
	Faceless, Unreadable, Poor, Several int
	// Chosen counts the photographs of several faces one of which was taken, and Aside those
	// on which another face than the taken one is nearer to the middle.
	Chosen, Aside int
	// Taken has what became of each photograph.
	Taken []Taken
}

// Taken is the outcome of a photograph, with its face.
type Taken struct {
	Outcome Outcome
	// Face is the face that was taken, also if it is Poor.
	Face engine.Face
	// Chosen reports whether the face is one of several, and Aside whether another one is nearer to
	// the middle.
	Chosen, Aside bool
}

// Outcome says whether a face was acquired, and why not.
type Outcome string

// The outcomes of a photograph.
const (
	Acquired   Outcome = "acquired"
	Faceless   Outcome = "no face"
	Unreadable Outcome = "no image"
	Several    Outcome = "several faces"
	Poor       Outcome = "poor"
)

// The values of --faces: the face nearest to the middle, and the rules of the service.
const (
	FacesMiddle   = "middle"
	FacesRefuse   = "refuse"
	FacesDominant = "dominant"
)

// ChoiceOf returns the choice that a value of --faces names, and whether there is one.
func ChoiceOf(faces string) (Choice, bool) {
	switch faces {
	case FacesMiddle:
		return Choice{Middle: true}, true
	case FacesRefuse:
		return Choice{}, true
	case FacesDominant:
		return Choice{Rule: portrait.Dominant}, true
	}
	return Choice{}, false
}

// Choice says which face of a photograph is taken.
type Choice struct {
	// Middle takes the face nearest to the middle, because other persons may be on the
	// photograph too. Otherwise Rule decides, as in the service.
	Middle bool
	Rule   portrait.Rule
	// QualityMin is the least quality of a face, 0 to 1. By a rule of the service it is that of
	// each person's first photograph, which is enrolled; the others are probes.
	QualityMin float64
}

// qualityMin returns the least quality of the photograph i.
func (c Choice) qualityMin(photos []Photo, i int) float64 {
	if !c.Middle && !first(photos, i) {
		return portrait.ProbeQualityMin
	}
	return c.QualityMin
}

// poor reports whether the service would refuse the photograph's face for its quality or, in an
// enrolment, for a defect.
func (c Choice) poor(face *engine.Face, photos []Photo, i int) bool {
	if float64(face.Attributes.Quality) < c.qualityMin(photos, i) {
		return true
	}
	return !c.Middle && first(photos, i) && len(face.Defects) > 0
}

// first reports whether the photograph i is its person's first.
func first(photos []Photo, i int) bool {
	return i == 0 || photos[i-1].Person != photos[i].Person
}

// Failed returns the number of photographs that were not acquired.
func (x *Extracted) Failed() int { return x.Faceless + x.Unreadable + x.Poor + x.Several }

// Extract extracts the face that c takes of every photograph. It does not acquire a
// photograph without a face, one that is no image, one of several faces none of which c
// takes, and one whose face is too poor. If screen is a terminal it shows the progress;
// screen may be nil.
func Extract(ctx context.Context, e *engine.Engine, photos []Photo, c Choice, screen *os.File) (*Extracted, error) {
	x := &Extracted{
		Samples: make([]accuracy.Sample, len(photos)), Templates: make([]engine.Template, len(photos)),
		Taken: make([]Taken, len(photos)),
	}
	show := NewProgress(screen, len(photos))
	var next atomic.Int64
	workers, ctx := errgroup.WithContext(ctx)
	for range min(runtime.GOMAXPROCS(0), workersMax) {
		workers.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(photos) {
					return nil
				}
				var err error
				if x.Taken[i], err = c.take(ctx, e, photos, i); err != nil {
					return err
				}
				show.Add()
			}
		})
	}
	err := workers.Wait()
	show.Close()
	if err != nil {
		return nil, fmt.Errorf("extract: %w", err)
	}
	for i, taken := range x.Taken {
		x.Samples[i].Person = photos[i].Person
		x.count(i, taken)
	}
	return x, nil
}

// count counts what became of the photograph i.
func (x *Extracted) count(i int, taken Taken) {
	switch taken.Outcome {
	case Faceless:
		x.Faceless++
	case Unreadable:
		x.Unreadable++
	case Several:
		x.Several++
	case Poor:
		x.Poor++
	case Acquired:
		x.Samples[i].Acquired, x.Samples[i].Quality = true, taken.Face.Attributes.Quality
		x.Templates[i] = taken.Face.Template
	}
	if taken.Chosen {
		x.Chosen++
	}
	if taken.Aside {
		x.Aside++
	}
}

// take returns what becomes of the photograph i.
func (c Choice) take(ctx context.Context, e *engine.Engine, photos []Photo, i int) (Taken, error) {
	taken, err := c.face(ctx, e, photos[i].File)
	switch {
	case errors.Is(err, errFaceless):
		return Taken{Outcome: Faceless}, nil
	case errors.Is(err, engine.ErrImage):
		return Taken{Outcome: Unreadable}, nil
	case errors.Is(err, portrait.ErrSeveral):
		return Taken{Outcome: Several}, nil
	case err != nil:
		return Taken{}, err
	case c.poor(&taken.Face, photos, i):
		taken.Outcome = Poor
	default:
		taken.Outcome = Acquired
	}
	return taken, nil
}

var errFaceless = errors.New("there is no face on the photograph")

// workersMax is the most photographs that wait for the engine.
const workersMax = 64

// face returns the face of a photograph that c takes, without the outcome.
func (c Choice) face(ctx context.Context, e *engine.Engine, file string) (taken Taken, err error) {
	data, err := readPhoto(file)
	if err != nil {
		return taken, err
	}
	if c.Middle {
		found, err := e.ExtractLarge(ctx, data, 0)
		if err != nil {
			return taken, err
		}
		taken.Face, err = middleFace(data, found)
		return taken, err
	}
	found, err := e.ExtractLarge(ctx, data, portrait.SoughtSide)
	if err == nil && len(found) == 0 { // as in the service
		found, err = e.Extract(ctx, data)
	}
	if err != nil {
		return taken, err
	}
	if len(found) == 0 {
		return taken, errFaceless
	}
	of, err := c.Rule.Take(data, found)
	if err != nil {
		return taken, err
	}
	middle, err := middleFace(data, found)
	return Taken{Face: of.Face, Chosen: len(of.Ignored) > 0, Aside: middle.Attributes != of.Attributes}, err
}

// middleFace returns the face nearest to the middle of a photograph.
func middleFace(data []byte, found []engine.Face) (engine.Face, error) {
	switch {
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
