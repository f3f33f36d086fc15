package photos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"facet/engine"
	"facet/engine/imaging"
	"facet/engine/portrait"
)

// Taken is the outcome of a photograph, with its face.
type Taken struct {
	Outcome Outcome
	// Face is the face that was taken, if one was acquired.
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
}

// Extract extracts the face that c takes of every photograph, and returns them in the order of the
// photographs, whatever their quality. If screen is a terminal it shows the progress; screen may be
// nil.
func Extract(ctx context.Context, e *engine.Engine, photos []Photo, c Choice, screen *os.File) ([]Taken, error) {
	list := make([]Taken, len(photos))
	err := Each(ctx, len(photos), screen, func(ctx context.Context, i int) (err error) {
		list[i], err = c.take(ctx, e, photos[i].File)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("extract: %w", err)
	}
	return list, nil
}

// take returns what becomes of a photograph.
func (c Choice) take(ctx context.Context, e *engine.Engine, file string) (Taken, error) {
	taken, err := c.face(ctx, e, file)
	switch {
	case errors.Is(err, errFaceless):
		return Taken{Outcome: Faceless}, nil
	case errors.Is(err, engine.ErrImage):
		return Taken{Outcome: Unreadable}, nil
	case errors.Is(err, portrait.ErrSeveral):
		return Taken{Outcome: Several}, nil
	}
	taken.Outcome = Acquired
	return taken, err
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
