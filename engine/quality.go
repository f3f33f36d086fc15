package engine

import (
	"math"

	"facet/engine/imaging"
	"facet/engine/models"
)

// measured are the features of a face in the order in which they are summed, so
// that the sum has the same bits every time.
var measured = [...]models.Feature{
	models.FeatureNorm,
	models.FeatureScore,
	models.FeatureSharpness,
	models.FeatureDirectionalSharpness,
	models.FeatureContrast,
	models.FeatureBrightness,
	models.FeatureEyeDistance,
	models.FeatureFrontal,
}

// quality weighs the features as the pack says: the expected usefulness of the
// face for comparison, 0 to 1.
func quality(q *models.Quality, features *[len(measured)]float64) float64 {
	sum := q.Bias
	for i, f := range measured {
		sum += float64(q.Weights[f] * features[i])
	}
	return logistic(sum)
}

// look is what the grey aligned crop shows.
type look struct{ sharpness, directional, contrast, brightness float64 }

// directions are eight neighbours at a distance of about three pixels, every
// 22.5°. Motion takes the detail along its direction away at this distance, while
// at one pixel noise and the crop's own smoothing hide it (measured: distances of
// one, two and four tell motion blur less well).
var directions = [...][2]int{{3, 0}, {3, 1}, {2, 2}, {1, 3}, {0, 3}, {-1, 3}, {-2, 2}, {-3, 1}}

const lookBorder = 6 // pixels at the crop's border that are not looked at

// lookOf measures the crop as models.Feature documents.
func lookOf(crop *imaging.Image, luma []float32) look {
	w, h := crop.Width, crop.Height
	var sum, squares float64
	for i := range luma {
		px := crop.Pix[3*i:][:3]
		luma[i] = .299*float32(px[0]) + .587*float32(px[1]) + .114*float32(px[2])
		sum += float64(luma[i])
		squares += float64(luma[i]) * float64(luma[i])
	}
	n := float64(len(luma))
	mean := sum / n
	l := look{brightness: mean / 255, contrast: math.Sqrt(max(0, squares/n-mean*mean)) / 255}
	l.sharpness = math.Log1p(variance(w, h, func(i int) float32 {
		return luma[i-1] + luma[i+1] + luma[i-w] + luma[i+w] - 4*luma[i]
	}))
	least := math.Inf(1)
	for _, d := range directions {
		step := d[0] + d[1]*w
		least = min(least, variance(w, h, func(i int) float32 { return luma[i-step] + luma[i+step] - 2*luma[i] }))
	}
	l.directional = math.Log1p(least)
	return l
}

// variance is that of f over the pixels away from the border.
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
