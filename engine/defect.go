package engine

import "math"

// Defect is a reason not to enrol a face, though an image of it may have a good quality. Its text is
// for programs and never changes.
type Defect string

// The defects, in the order in which Face.Defects has them.
const (
	DefectUpsideDown Defect = "FaceUpsideDown"
	DefectCut        Defect = "FaceCut"
	DefectDark       Defect = "FaceTooDark"
	DefectEyes       Defect = "EyesCovered"
	DefectMouth      Defect = "MouthCovered"
	DefectMoved      Defect = "FaceMoved"
)

// The limits were set on LFW: TestSpoiltFacesHaveDefects shows what they find, and in which share of
// untouched photographs.
const (
	upsideDownMin = 135 // degrees of roll
	cutMin        = .1  // share of the face area that lies outside the image
	darkMean      = .13 // of the grey values, black 0, white 1
	eyesMin       = 3   // evidence, in log odds
	oneEyeMin     = 2.5
	mouthMin      = 1.3
	movedMin      = 2.5
)

// Evidence for motion, in log odds: little detail along one direction, much less than along the
// direction with the most, and less fine detail than coarse.
const (
	movedEven        = -4.8
	movedDirectional = -1.93
	movedIsotropy    = -6.33
	movedFineness    = -3.4
)

// Advice returns what is wrong and what the person before the camera can do.
func (d Defect) Advice() string {
	switch d {
	case DefectUpsideDown:
		return "the face is upside down: turn the photo"
	case DefectCut:
		return "the border cuts the face: move the whole face into the picture"
	case DefectDark:
		return "the face is too dark: turn on a light, or turn towards it"
	case DefectEyes:
		return "the eyes are covered: take off dark glasses and hold nothing before the eyes"
	case DefectMouth:
		return "nose or mouth are covered: take off the mask and hold nothing before the face"
	case DefectMoved:
		return "the photo is blurred by motion: hold still"
	default:
		return ""
	}
}

// Advice returns the most likely reason why the face is of little use, in words for the person before
// the camera, or "" if none is known.
func (f *Face) Advice() string {
	if len(f.Defects) > 0 {
		return f.Defects[0].Advice()
	}
	m := &f.Measures
	if m.EyeDistance.Native == 0 {
		return ""
	}
	const (
		aside       = .5 // degree of frontal view
		nearlyAhead = .85
		smallEyes   = 20  // pixels
		dim         = .25 // mean of the grey values
		vague       = 30  // components
		glaring     = 10
		oneSided    = 50
	)
	switch {
	case f.Attributes.Frontal < aside:
		return "turn towards the camera"
	case m.EyeDistance.Native < smallEyes:
		return "the face is too small: come closer to the camera"
	case m.LuminanceMean.Native < dim:
		return DefectDark.Advice()
	case m.OverExposure.Component < glaring:
		return "the face is too bright: avoid direct light"
	case m.Sharpness.Component < vague:
		return "the photo is not sharp: clean the lens, hold still and wait until it is"
	case m.Evenness.Component < oneSided:
		return "the light comes from one side: turn towards it"
	case f.Attributes.Frontal < nearlyAhead:
		return "turn towards the camera"
	default:
		return ""
	}
}

// defects returns the defects of a sighting, of whose face area a share lies outside the image.
func (s *sighting) defects(outside float64) []Defect {
	var all []Defect
	moved := movedEven + movedDirectional*s.look.directional + movedIsotropy*s.look.isotropy + movedFineness*s.look.fineness
	for _, d := range []struct {
		is     Defect
		really bool
	}{
		{DefectUpsideDown, math.Abs(s.roll) >= upsideDownMin},
		{DefectCut, outside >= cutMin},
		{DefectDark, s.light.mean < darkMean},
		{DefectEyes, s.cover.eyes >= eyesMin || s.cover.oneEye >= oneEyeMin},
		{DefectMouth, s.cover.mouth >= mouthMin},
		{DefectMoved, moved >= movedMin},
	} {
		if d.really {
			all = append(all, d.is)
		}
	}
	return all
}
