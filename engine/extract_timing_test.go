package engine_test

import (
	"context"
	"testing"
	"time"

	"facet/engine"
	"facet/engine/enginetest"
	"facet/engine/imaging"
	"facet/engine/models"
	"facet/engine/onnx"
)

// bare are the pack's networks without anything of ours about them.
type bare struct{ detector, landmarks, embedder *onnx.Runner }

func newBare(tb testing.TB) bare {
	tb.Helper()
	if err := onnx.Load(enginetest.Library(tb), ""); err != nil {
		tb.Fatal(err)
	}
	pack := enginetest.Pack(tb)
	open := func(role models.Role, input []int64, outputs ...onnx.Tensor) *onnx.Runner {
		network, err := pack.Load(role)
		if err != nil {
			tb.Fatal(err)
		}
		m, err := onnx.Open(onnx.Spec{Name: string(role), Network: network, Input: onnx.Tensor{Shape: input}, Outputs: outputs})
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(m.Close)
		r, err := m.NewRunner()
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(r.Close)
		return r
	}
	return bare{
		detector: open(models.RoleDetector, []int64{1, 3, 240, 320},
			onnx.Tensor{Name: "scores", Shape: []int64{1, 4420, 2}}, onnx.Tensor{Name: "boxes", Shape: []int64{1, 4420, 4}}),
		landmarks: open(models.RoleLandmarks, []int64{1, 1, 64, 64}, onnx.Tensor{Shape: []int64{1, 136}}),
		embedder:  open(models.RoleEmbedder, []int64{1, 3, 112, 112}, onnx.Tensor{Shape: []int64{1, 192}}),
	}
}

// one runs what one portrait needs at least: a look at the frame, the landmarks'
// two passes, a template.
func (n bare) one(tb testing.TB) {
	tb.Helper()
	for _, r := range []*onnx.Runner{n.detector, n.landmarks, n.landmarks, n.embedder} {
		if err := r.Run(); err != nil {
			tb.Fatal(err)
		}
	}
}

// BenchmarkExtract prints, beside the time of an extraction, the time of the bare
// networks that one portrait needs and of the decoder at the scales at which the
// extraction used it, both taken in turns with it, and the ratio of the whole to
// their sum. "bench engine" in scripts compares with all that an extraction runs.
func BenchmarkExtract(b *testing.B) {
	e := enginetest.New(b, engine.Config{Workers: 1})
	nets := newBare(b)
	all := func(data []byte) ([]engine.Face, error) { return e.Extract(context.Background(), data) }
	large := func(data []byte) ([]engine.Face, error) { return e.ExtractLarge(context.Background(), data, .35) }
	for _, c := range []struct {
		name, photo string
		extract     func([]byte) ([]engine.Face, error)
	}{
		{"one person/512 x 512 PNG", "scikit-image/astronaut.png", large},
		{"one person/910 x 1137 JPEG", "face_recognition/obama.jpg", large},
		{"all faces/910 x 1137 JPEG", "face_recognition/obama.jpg", all},
		{"all faces/group of 5, 1920 x 1398 JPEG", "face-api/sample5.jpg", all},
	} {
		data := enginetest.Photo(b, c.photo)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			decode := decoderOf(b, e, data, c.extract)
			var models, decoder, whole time.Duration
			for b.Loop() {
				start := time.Now()
				if _, err := c.extract(data); err != nil {
					b.Fatal(err)
				}
				whole += time.Since(start)
				b.StopTimer()
				start = time.Now()
				nets.one(b)
				models += time.Since(start)
				start = time.Now()
				decode()
				decoder += time.Since(start)
				b.StartTimer()
			}
			ms := func(d time.Duration) float64 { return d.Seconds() * 1e3 / float64(b.N) }
			b.ReportMetric(ms(models), "models-ms")
			b.ReportMetric(ms(decoder), "decoder-ms")
			b.ReportMetric(ms(whole)/ms(models+decoder), "ratio")
		})
	}
}

// decoderOf returns what decodes the image as often and as small as extract does.
func decoderOf(b *testing.B, e *engine.Engine, data []byte, extract func([]byte) ([]engine.Face, error)) func() {
	b.Helper()
	before := e.Work().Decoded
	if _, err := extract(data); err != nil {
		b.Fatal(err)
	}
	times := e.Work().Decoded
	head, err := imaging.DecodeConfig(data)
	if err != nil {
		b.Fatal(err)
	}
	var im imaging.Image
	return func() {
		for i := range times {
			for range times[i] - before[i] {
				if err := head.DecodeInto(context.Background(), &im, data, imaging.Shrink(1<<i)); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
}

// BenchmarkExtractAtOnce has as many requests as cores.
func BenchmarkExtractAtOnce(b *testing.B) {
	e := enginetest.New(b, engine.Config{})
	data := enginetest.Photo(b, "face_recognition/obama.jpg")
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := e.ExtractLarge(context.Background(), data, .35); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
