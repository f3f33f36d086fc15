package engine

import (
	"image"
	"math"

	"facet/engine/imaging"
	"facet/engine/models"
)

// A smooth thing before the face (a mask, a hand, dark glasses) has less detail and contrast than eyes
// and mouth have, measured against the whole face so that blur and poor light do not count. Landmarks
// of a half-covered face disagree, too. The weights are logistic fits on 138 LFW portraits with eyes,
// mouth or one half covered, and 4,256 untouched photographs; they use no embedding, so they suit
// every pack. All lengths are in eye distances of the aligned crop, so that they fit every pack.
const (
	pupilWide, pupilHigh = .25, .15 // half sides of the inner eye
	lipsWide, lipsHigh   = .45, .20 // half sides of the mouth
	cheekSide            = .15      // half side of the squares for the evenness of light

	// The face in the crop, from the middle between the eyes.
	faceAside, faceAbove, faceUnder = 1.165, .613, 1.515

	detailLeast   = .5 // keeps logarithms of no detail finite
	contrastLeast = 2
	lightLeast    = 8
	doubtCounted  = .4 // more doubt is no more evidence

	unevenLeast = .02

	detailStep = .25 // in which detail is counted to find its median
	evenGreys  = 8   // difference of grey values that are about the same
)

// zones are parts of the embedder's crop.
type zones struct {
	eyes, pupils, cheeks [2]image.Rectangle
	lips, face           image.Rectangle
	// pattern is the usual look of an eye, with mean 0: a dark bar above light skin.
	pattern [2][]float64
}

func zonesOf(e *models.Embedder) *zones {
	p := e.Points
	at := func(i int) imaging.Point { return imaging.Point{X: float64(p[i][0]), Y: float64(p[i][1])} }
	between := func(a, b imaging.Point) imaging.Point {
		return imaging.Point{X: (a.X + b.X) / 2, Y: (a.Y + b.Y) / 2}
	}
	unit := math.Hypot(at(0).X-at(1).X, at(0).Y-at(1).Y)
	inner := image.Rect(1, 1, e.Input.Width-1, e.Input.Height-1)
	rect := func(c imaging.Point, aside, above, under float64) image.Rectangle {
		return image.Rect(
			int(math.Round(c.X-aside*unit)), int(math.Round(c.Y-above*unit)),
			int(math.Round(c.X+aside*unit)), int(math.Round(c.Y+under*unit)),
		).Intersect(inner)
	}
	mouth := between(at(3), at(4))
	z := &zones{
		lips: rect(mouth, lipsWide, lipsHigh, lipsHigh),
		face: rect(between(at(0), at(1)), faceAside, faceAbove, faceUnder),
	}
	for i := range z.eyes {
		z.eyes[i] = rect(at(i), eyeWide, eyeHigh, eyeHigh)
		z.pupils[i] = rect(at(i), pupilWide, pupilHigh, pupilHigh)
		cheek := imaging.Point{X: at(i).X, Y: (at(i).Y + mouth.Y) / 2}
		z.cheeks[i] = rect(cheek, cheekSide, cheekSide, cheekSide)
		z.pattern[i] = eyePattern(z.eyes[i], unit)
	}
	return z
}

// eyePattern returns the pattern of an eye that fills r, row after row.
func eyePattern(r image.Rectangle, unit float64) []float64 {
	const rise, barWide, barHigh = .6 / eyeHigh, .25, .1
	var pattern []float64
	var sum float64
	for j := range r.Dy() {
		for i := range r.Dx() {
			x := (float64(i) - float64(r.Dx()-1)/2) / unit
			y := (float64(j) - float64(r.Dy()-1)/2) / unit
			v := rise*y - math.Exp(-x*x/barWide/barWide-y*y/barHigh/barHigh)
			pattern = append(pattern, v)
			sum += v
		}
	}
	for i := range pattern {
		pattern[i] -= sum / float64(len(pattern))
	}
	return pattern
}

// cover is the evidence, in log odds, that something covers a part of a face.
type cover struct{ eyes, oneEye, mouth float64 }

// coverOf measures the grey crop, w pixels wide, of a face whose landmarks have this doubt.
func (z *zones) coverOf(luma []float32, w int, doubt float64) cover {
	face := zoneOf(luma, w, z.face)
	lips := zoneOf(luma, w, z.lips).relative(&face)
	var eye [2]zone
	var like [2]float64
	brighter := 0.
	for i := range eye {
		inner := zoneOf(luma, w, z.pupils[i])
		brighter = max(brighter, inner.mean)
		eye[i] = inner.relative(&face)
		like[i] = z.eyeLikeness(luma, w, i)
	}
	worse, other := eye[0], eye[1]
	if other.median+other.deviation < worse.median+worse.deviation {
		worse, other = other, worse
	}
	light := math.Log(lightLeast+brighter) - math.Log(lightLeast+face.mean)
	return cover{
		eyes: .63 - 2.24*worse.median - 5.3*other.median + 2.09*other.deviation - 1.48*max(like[0], like[1]) +
			10.73*light - .25*min(eye[0].uneven, eye[1].uneven) - 7.35*max(eye[0].uneven, eye[1].uneven),
		oneEye: -10.02 - 2.96*worse.median + 1.11*worse.deviation + 6*worse.detail +
			35.8*min(doubt, doubtCounted) - 4.51*min(eye[0].uneven, eye[1].uneven),
		mouth: -2.26 - 1.09*lips.median + .66*lips.deviation - 9.23*lips.detail - 3.37*lips.uneven,
	}
}

// zone is what a part of the crop shows: mean and standard deviation of its grey values, the share of
// pixels that are not about as bright as their median, and mean and median of the Laplacian's magnitude.
type zone struct{ mean, deviation, uneven, detail, median float64 }

func zoneOf(luma []float32, w int, r image.Rectangle) zone {
	var greys, details [256]int
	var sum, squares, detail float64
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			i := y*w + x
			v := luma[i]
			sum += float64(v)
			squares += float64(v) * float64(v)
			greys[min(int(v+.5), len(greys)-1)]++
			d := luma[i-1] + luma[i+1] + luma[i-w] + luma[i+w] - 4*v
			d = max(d, -d)
			detail += float64(d)
			details[min(int(d/detailStep), len(details)-1)]++
		}
	}
	n := max(1, r.Dx()*r.Dy())
	z := zone{mean: sum / float64(n), detail: detail / float64(n), median: detailStep * float64(middle(&details, n))}
	z.deviation = math.Sqrt(max(0, squares/float64(n)-z.mean*z.mean))
	usual := middle(&greys, n)
	for v, count := range greys {
		if v < usual-evenGreys || v > usual+evenGreys {
			z.uneven += float64(count) / float64(n)
		}
	}
	return z
}

// middle returns the bin of the median of n values.
func middle(bins *[256]int, n int) int {
	seen := 0
	for i, count := range bins {
		if seen += count; 2*seen >= n {
			return i
		}
	}
	return len(bins) - 1
}

// relative returns the logarithms of z's detail and deviation as shares of the face's, and that of uneven.
func (z zone) relative(face *zone) zone {
	share := func(a, b, least float64) float64 { return math.Log((least + a) / (least + b)) }
	return zone{
		deviation: share(z.deviation, face.deviation, contrastLeast),
		detail:    share(z.detail, face.detail, detailLeast),
		median:    share(z.median, face.median, detailLeast),
		uneven:    math.Log(unevenLeast + z.uneven),
	}
}

// eyeLikeness returns how an eye of the crop correlates with the pattern, −1 to 1. Little contrast
// brings it near to 0.
func (z *zones) eyeLikeness(luma []float32, w, eye int) float64 {
	const varianceLeast = 50
	r, pattern := z.eyes[eye], z.pattern[eye]
	var sum, squares, product, power float64
	at := 0
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			v, p := float64(luma[y*w+x]), pattern[at]
			sum += v
			squares += v * v
			product += v * p
			power += p * p
			at++
		}
	}
	n := float64(max(1, at))
	return product / math.Sqrt((squares-sum*sum/n)*power+varianceLeast*n)
}
