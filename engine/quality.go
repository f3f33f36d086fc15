package engine

import (
	"image"
	"math"
	"slices"

	"facet/engine/imaging"
	"facet/engine/models"
	"facet/internal/stale"
)

// measured are the features of a face in the order of summing, so that the sum always has the same
// bits.
var measured = [...]models.Feature{
	models.FeatureNorm,
	models.FeatureScore,
	models.FeatureSharpness,
	models.FeatureDirectionalSharpness,
	models.FeatureContrast,
	models.FeatureBrightness,
	models.FeatureEyeDistance,
	models.FeatureFrontal,
	models.FeatureIsotropy,
	models.FeatureFineness,
	models.FeatureSmear,
	models.FeatureUnevenness,
	models.FeatureClipped,
	models.FeatureDoubt,
}

// Features are the measurements of a face that a quality weighs, in the order of FeatureNames.
type Features [len(measured)]float64

// FeatureNames returns the name of each of the Features.
func FeatureNames() []models.Feature { return slices.Clone(measured[:]) }

// quality weighs the features with the pack's weights. It returns the probability, 0 to 1, that a
// comparison with a good photograph of the same person reaches score 7000 (utility in the sense of
// ISO/IEC 29794-1).
func quality(q *models.Quality, features *Features) float64 {
	sum := q.Bias
	for i, f := range measured {
		sum += float64(q.Weights[f] * features[i])
	}
	return logistic(sum)
}

// look holds the measurements of the grey aligned crop; models.Feature documents them.
type look struct {
	sharpness, directional, isotropy, fineness, smear, unevenness, contrast, brightness, clipped float64
}

// directions are eight neighbours at a distance of about three pixels, every 22.5°. At this
// distance motion removes the detail along its direction. At one pixel noise and the crop's own
// smoothing hide it (measured: one, two and four pixels detect motion blur less well).
var directions = [...][2]int{{3, 0}, {3, 1}, {2, 2}, {1, 3}, {0, 3}, {-1, 3}, {-2, 2}, {-3, 1}}

// fine and coarse are neighbours along four directions at two and six pixels.
var (
	fine   = [...][2]int{{2, 0}, {1, 1}, {0, 2}, {-1, 1}}
	coarse = [...][2]int{{6, 0}, {4, 4}, {0, 6}, {-4, 4}}
)

const lookBorder = 6 // pixels at the crop's border that are left out

const (
	// Pixels below and above are nearly black or white.
	black, white = 4, 251
	// A face of less directional sharpness is smeared.
	sharpEnough = 5

	// Half sides of the regions of eyes, nose and mouth, in eye distances.
	eyeWide, eyeHigh     = .37, .28
	noseWide, noseHigh   = .40, .31
	mouthWide, mouthHigh = .57, .31
)

// regionsOf returns the regions of both eyes, nose and mouth in the embedder's crop.
func regionsOf(e *models.Embedder) (regions [4]image.Rectangle) {
	p := e.Points
	eyes := math.Hypot(float64(p[0][0]-p[1][0]), float64(p[0][1]-p[1][1]))
	mouth := [2]float32{(p[3][0] + p[4][0]) / 2, (p[3][1] + p[4][1]) / 2}
	inner := image.Rect(1, 1, e.Input.Width-1, e.Input.Height-1)
	for i, r := range []struct {
		at         [2]float32
		wide, high float64
	}{{p[0], eyeWide, eyeHigh}, {p[1], eyeWide, eyeHigh}, {p[2], noseWide, noseHigh}, {mouth, mouthWide, mouthHigh}} {
		x, y := float64(r.at[0]), float64(r.at[1])
		regions[i] = image.Rect(
			int(math.Round(x-r.wide*eyes)), int(math.Round(y-r.high*eyes)),
			int(math.Round(x+r.wide*eyes)), int(math.Round(y+r.high*eyes)),
		).Intersect(inner)
	}
	return regions
}

// lookOf measures the crop; luma is room for its grey values.
func lookOf(crop *imaging.Image, luma []float32, regions *[4]image.Rectangle) look {
	stale.Fill(luma)
	w, h := crop.Width, crop.Height
	var sum, squares, clipped float64
	for i := range luma {
		px := crop.Pix[3*i:][:3]
		luma[i] = .299*float32(px[0]) + .587*float32(px[1]) + .114*float32(px[2])
		sum += float64(luma[i])
		squares += float64(luma[i]) * float64(luma[i])
		if luma[i] < black || luma[i] > white {
			clipped++
		}
	}
	n := float64(len(luma))
	mean := sum / n
	l := look{brightness: mean / 255, contrast: math.Sqrt(max(0, squares/n-mean*mean)) / 255, clipped: clipped / n}
	laplacian := func(i int) float32 { return luma[i-1] + luma[i+1] + luma[i-w] + luma[i+w] - 4*luma[i] }
	l.sharpness = math.Log1p(variance(w, h, laplacian))
	along := func(d [2]int) float64 {
		step := d[0] + d[1]*w
		return math.Log1p(variance(w, h, func(i int) float32 { return luma[i-step] + luma[i+step] - 2*luma[i] }))
	}
	least, most := math.Inf(1), 0.
	for _, d := range directions {
		v := along(d)
		least, most = min(least, v), max(most, v)
	}
	l.directional, l.isotropy, l.smear = least, least-most, max(0, sharpEnough-least)
	for i := range fine {
		l.fineness += (along(fine[i]) - along(coarse[i])) / float64(len(fine))
	}
	l.unevenness = unevenness(w, regions, laplacian)
	return l
}

// unevenness returns the range of detail over the regions.
func unevenness(w int, regions *[4]image.Rectangle, laplacian func(i int) float32) float64 {
	least, most := math.Inf(1), 0.
	for _, r := range regions {
		var sum float64
		for y := r.Min.Y; y < r.Max.Y; y++ {
			for x := r.Min.X; x < r.Max.X; x++ {
				sum += math.Abs(float64(laplacian(y*w + x)))
			}
		}
		detail := math.Log1p(sum / float64(max(1, r.Dx()*r.Dy())))
		least, most = min(least, detail), max(most, detail)
	}
	return most - least
}

func variance(w, h int, f func(i int) float32) float64 {
	var sum, squares float64
	for y := lookBorder; y < h-lookBorder; y++ {
		for x := lookBorder; x < w-lookBorder; x++ {
			v := float64(f(y*w + x))
			sum += v
			squares += v * v
		}
	}
	n := float64(max(1, (w-2*lookBorder)*(h-2*lookBorder)))
	return max(0, squares/n-(sum/n)*(sum/n))
}
