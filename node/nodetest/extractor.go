package nodetest

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"facet/engine"
	"facet/engine/score"
	"facet/internal/id"
)

// Dim is the number of dimensions of HashExtractor's templates.
const Dim = 192

// Model is the model id of HashExtractor's templates.
var Model = id.Model{'h', 'a', 's', 'h'}

// HashExtractor finds one face in each image. Its template is a random unit vector
// seeded by the image's hash. Equal images have the cosine 1, others are near 0. An
// image is any text of at least one byte.
type HashExtractor struct{}

// Extract returns the face of image (router.Extractor).
func (HashExtractor) Extract(_ context.Context, image []byte) ([]engine.Face, error) {
	if len(image) == 0 {
		return nil, fmt.Errorf("%w: it is empty", engine.ErrImage)
	}
	sum := sha256.Sum256(image)
	random := rand.New(rand.NewPCG(binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:16])))
	template := make(engine.Template, Dim)
	var squares float64
	for i := range template {
		v := random.NormFloat64()
		template[i] = float32(v)
		squares += v * v
	}
	for i := range template {
		template[i] /= float32(math.Sqrt(squares))
	}
	return []engine.Face{{Template: template, Model: Model, Attributes: engine.Attributes{
		Face: engine.Rect{Left: 10, Top: 10, Right: 90, Bottom: 90}, Head: engine.Rect{Left: 0, Top: 0, Right: 100, Bottom: 100},
		RightEye: engine.Point{X: 30, Y: 40}, LeftEye: engine.Point{X: 70, Y: 40},
		Score: .99, Frontal: .9, Quality: .9,
	}}}, nil
}

// ExtractLarge returns the same face (router.Extractor).
func (e HashExtractor) ExtractLarge(ctx context.Context, image []byte, _ float32) ([]engine.Face, error) {
	return e.Extract(ctx, image)
}

// Table returns a score table for HashExtractor: a straight line over the cosines.
func Table() *score.Table {
	t, err := score.NewTable([]score.Point{{Cosine: -1, Score: 0}, {Cosine: 0, Score: 1}, {Cosine: .48, Score: 7000}, {Cosine: .998, Score: 9999}, {Cosine: 1, Score: 9999}})
	if err != nil {
		panic("bug: score table of tests: " + err.Error())
	}
	return t
}
