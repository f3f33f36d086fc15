package engine

import (
	"image"
	"math"

	"facet/engine/imaging"
)

// Measure is one measure of a face after ISO/IEC 29794-5: the native measure, in the unit that
// Measures states, and the quality component made of it, a whole number from 0 (bad) to 100.
type Measure struct{ Native, Component float32 }

// Measures say how a face was photographed. They follow the components of ISO/IEC 29794-5 that need no
// further model, with the standard's curves. Where the standard looks at the outline of the face by its
// own landmarks, these look at a rectangle of the aligned crop, about 2.3 by 2.1 eye distances.
type Measures struct {
	// LuminanceMean and LuminanceVariance are those of the grey values, black 0, white 1.
	LuminanceMean, LuminanceVariance Measure
	// UnderExposure is the share of pixels up to 25 of 255, OverExposure of 247 and more.
	UnderExposure, OverExposure Measure
	// DynamicRange is the entropy of the grey values, in bits.
	DynamicRange Measure
	// Evenness is the illumination uniformity: what the histograms of both cheeks share, 0 to 1.
	Evenness Measure
	// Sharpness is ln(1 + variance of the Laplacian). The standard uses a trained forest; the curve
	// is our own.
	Sharpness Measure
	// EyeDistance is in pixels, as if the face looked ahead.
	EyeDistance Measure
	// HeadSize is the distance from the eyes to the chin, as a share of the image's height.
	HeadSize Measure
	// Left and Right are the distances from the outer eye's centre to the image's border, in eye
	// distances. Above and Below are those from the eyes, in distances from eyes to chin.
	Left, Right, Above, Below Measure
	// Yaw, Pitch and Roll are Pan, Tilt and Roll of the Attributes, in degrees.
	Yaw, Pitch, Roll Measure
}

const (
	darkMost, lightMin = 25, 247
	cheekBins          = 32 // the cheeks have too few pixels for 256

	// Half the quality of sharpness, and its width. The sharpness of LFW photographs has a median of
	// 5, and of 3.3 when they are blurred by motion of a quarter of the eye distance.
	sharpHalf, sharpWidth = 3.9, .45

	chin = 8 // of the 68 landmarks
)

// light holds measurements of the grey crop.
type light struct{ mean, variance, dark, bright, entropy, evenness float64 }

// lightOf measures the grey crop, w pixels wide.
func (z *zones) lightOf(luma []float32, w int) light {
	var counts [256]int
	n := histogram(counts[:], luma, w, z.face)
	var l light
	for v, count := range counts {
		if count == 0 {
			continue
		}
		share, grey := float64(count)/n, float64(v)/255
		l.mean += share * grey
		l.variance += share * grey * grey
		l.entropy -= share * math.Log2(share)
		if v <= darkMost {
			l.dark += share
		}
		if v >= lightMin {
			l.bright += share
		}
	}
	l.variance = max(0, l.variance-l.mean*l.mean)
	var cheeks [2][cheekBins]int
	left := histogram(cheeks[0][:], luma, w, z.cheeks[0])
	right := histogram(cheeks[1][:], luma, w, z.cheeks[1])
	for i := range cheekBins {
		l.evenness += min(float64(cheeks[0][i])/left, float64(cheeks[1][i])/right)
	}
	return l
}

// histogram counts the grey values of r in bins of equal width. It returns the number of pixels, at
// least 1.
func histogram(bins []int, luma []float32, w int, r image.Rectangle) float64 {
	scale := float32(len(bins)) / 256
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for _, v := range luma[y*w+r.Min.X : y*w+r.Max.X] {
			bins[min(int((v+.5)*scale), len(bins)-1)]++
		}
	}
	return float64(max(1, r.Dx()*r.Dy()))
}

// measures returns the measures of a sighting on im.
func (s *sighting) measures(im *imaging.Image) Measures {
	l := &s.light
	middle := imaging.Point{X: (s.rightEye.X + s.leftEye.X) / 2, Y: (s.rightEye.Y + s.leftEye.Y) / 2}
	eyes := max(1, math.Hypot(s.rightEye.X-s.leftEye.X, s.rightEye.Y-s.leftEye.Y))
	long := max(1, math.Hypot(s.points[chin].X-middle.X, s.points[chin].Y-middle.Y))
	width, height := float64(im.Width), float64(im.Height)
	first, last := min(s.rightEye.X, s.leftEye.X), max(s.rightEye.X, s.leftEye.X)
	variance := 60 * l.variance / (60*l.variance + 1)
	size := long / height
	return Measures{
		LuminanceMean:     measure(l.mean, 100*rising(l.mean, .2, .05)*(1-rising(l.mean, .8, .05))),
		LuminanceVariance: measure(l.variance, 100*math.Sin(variance*math.Pi)),
		UnderExposure:     measure(l.dark, 120*(.832-rising(l.dark, .92, .05))),
		OverExposure:      measure(l.bright, 1/(l.bright+.01)),
		DynamicRange:      measure(l.entropy, 12.5*l.entropy),
		Evenness:          measure(l.evenness, 100*math.Pow(l.evenness, .3)),
		Sharpness:         measure(s.look.sharpness, 100*rising(s.look.sharpness, sharpHalf, sharpWidth)),
		EyeDistance:       measure(s.eyes, 100*rising(s.eyes, 70, 20)),
		HeadSize:          measure(size, 200*(1-rising(math.Abs(size-.45), 0, .05))),
		Left:              measure(first/eyes, 100*rising(first/eyes, .9, .1)),
		Right:             measure((width-last)/eyes, 100*rising((width-last)/eyes, .9, .1)),
		Above:             measure(middle.Y/long, 100*rising(middle.Y/long, 1.4, .1)),
		Below:             measure((height-middle.Y)/long, 100*rising((height-middle.Y)/long, 1.8, .1)),
		Yaw:               angle(s.pan),
		Pitch:             angle(s.tilt),
		Roll:              angle(s.roll),
	}
}

func measure(native, component float64) Measure {
	return Measure{Native: float32(native), Component: float32(math.Round(max(0, min(100, component))))}
}

func angle(degrees float64) Measure {
	ahead := max(0, math.Cos(degrees*math.Pi/180))
	return measure(degrees, 100*ahead*ahead)
}

// rising returns a logistic curve of x that is ½ at half.
func rising(x, half, width float64) float64 { return logistic((x - half) / width) }
