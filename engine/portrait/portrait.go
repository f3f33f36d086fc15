package portrait

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"facet/engine"
	"facet/engine/imaging"
)

// Rule says what happens to a photo with several faces. The numbers are stored.
type Rule uint8

const (
	// Refuse takes no face of several.
	Refuse Rule = 0
	// Dominant takes the face that is clearly the one meant, and no face of alike ones.
	Dominant Rule = 1
)

const (
	// A second face counts as another person from a face score of countedScore and
	// from countedSide of the largest face's side on. Smaller or vaguer faces in
	// the background do not make an image one of several faces.
	countedScore = 0.9
	countedSide  = 0.35
	// ProbeQualityMin is the least quality of a probe.
	ProbeQualityMin = 0.05
	// SoughtSide is the least share of the largest face's side for which the engine
	// searches when one face is wanted. It is a little less than countedSide, so
	// that rounding does not hide a second person.
	SoughtSide = 0.3

	// The most that another face may have of the side of the face that is taken:
	// muchSmaller wherever both are, the others when the taken face is on the middle line.
	// cutSide is more than 1 because the landmarks of a cut face are rough.
	muchSmaller = 0.5
	smaller     = 0.8
	cutSide     = 1.1
	poorSide    = 1.0
	// poorQuality is the most of the taken face's quality that a poor face has.
	poorQuality = 0.5
)

// ErrSeveral is returned when several faces count and none is taken.
var ErrSeveral = errors.New("portrait: several faces count")

// Taken is the face that a rule took.
type Taken struct {
	engine.Face
	// Ignored are the other faces, the largest first, unless they are too small to count. Only
	// Dominant ignores some.
	Ignored []engine.Attributes
}

// Take returns the face that the rule takes of the faces that the engine found on image, the largest
// first and at least one. The error wraps ErrSeveral, or engine.ErrImage.
func (r Rule) Take(image []byte, faces []engine.Face) (Taken, error) {
	var near []engine.Face // as large as one that counts
	several := false
	for i, f := range faces {
		if width(f) >= countedSide*width(faces[0]) {
			near = append(near, f)
			several = several || i > 0 && f.Attributes.Score >= countedScore
		}
	}
	if !several {
		return Taken{Face: faces[0]}, nil
	}
	if r != Dominant {
		return Taken{}, ErrSeveral
	}
	head, err := imaging.DecodeConfig(image)
	if err != nil {
		return Taken{}, fmt.Errorf("%w: %w", engine.ErrImage, err)
	}
	width, height := head.Upright()
	in := frame{float32(width), float32(height)}
	for i := range near {
		if in.dominates(&near[i].Attributes, near, i) {
			t := Taken{Face: near[i]}
			for _, f := range slices.Delete(near, i, i+1) {
				t.Ignored = append(t.Ignored, f.Attributes)
			}
			return t, nil
		}
	}
	return Taken{}, ErrSeveral
}

func width(f engine.Face) float32 { return f.Attributes.Face.Right - f.Attributes.Face.Left }

// frame is the size of an upright image.
type frame struct{ width, height float32 }

// dominates reports whether a, which is faces[own], is clearly the face meant.
func (in frame) dominates(a *engine.Attributes, faces []engine.Face, own int) bool {
	if a.Score < countedScore || in.cuts(a.Face) {
		return false
	}
	for i := range faces {
		if i != own && !in.clear(a, &faces[i].Attributes) {
			return false
		}
	}
	return true
}

// clear reports whether a, a whole face, is clearly meant beside b.
func (in frame) clear(a, b *engine.Attributes) bool {
	share, off := side(b.Face)/side(a.Face), in.off(a, a)
	onLine := off <= side(a.Face)/2
	if !onLine && off >= in.off(b, a) {
		return false
	}
	switch {
	case share <= muchSmaller:
		return true
	case !onLine:
		return false
	default:
		return share <= smaller ||
			share <= cutSide && in.cuts(b.Face) ||
			share <= poorSide && b.Quality <= poorQuality*a.Quality
	}
}

// side returns the longer side of a face area, which the image's border may have cut.
func side(r engine.Rect) float32 { return max(r.Right-r.Left, r.Bottom-r.Top) }

// cuts reports whether the image's border cuts a face area.
func (in frame) cuts(r engine.Rect) bool {
	const pixel = 1
	return r.Left < pixel || r.Top < pixel || r.Right > in.width-pixel || r.Bottom > in.height-pixel
}

// off returns the distance of f from the middle line of an image that lies as the face upright
// does, to the nearest quarter turn: a head that is held aslant does not turn the line.
func (in frame) off(f, upright *engine.Attributes) float32 {
	across := f.Face.Left + f.Face.Right - in.width
	if turns := math.Round(float64(upright.Roll) / 90); math.Mod(turns, 2) != 0 {
		across = f.Face.Top + f.Face.Bottom - in.height
	}
	return max(across, -across) / 2
}
