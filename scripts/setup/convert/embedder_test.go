package convert_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"image"
	_ "image/jpeg"
	"math"
	"sync"
	"testing"
	"time"

	"facet/engine"
	"facet/engine/enginetest"
	"facet/engine/models"
	"facet/engine/onnx"
	"facet/internal/must"
)

const (
	cropSide    = 112
	publishedTo = 512
)

// networks are the default embedder as published and as converted.
type networks struct {
	published, converted *onnx.Runner
	dim                  int
	basis                []float32 // dim rows of publishedTo
}

func openNetworks(tb testing.TB) networks {
	tb.Helper()
	must.Do(tb, onnx.Load(enginetest.Library(tb), ""))
	load := func(p *models.Pack, role models.Role) []byte {
		data, err := p.Load(role)
		must.Do(tb, err)
		return data
	}
	p := enginetest.Pack(tb)
	n := networks{dim: p.Manifest.Embedder.Dim}
	n.published = runner(tb, "published", published(tb, "fr_feature.onnx"), publishedTo)
	n.converted = runner(tb, "converted", load(p, models.RoleEmbedder), n.dim)
	basis := load(p, models.RoleBasis)
	n.basis = make([]float32, len(basis)/4)
	for i := range n.basis {
		n.basis[i] = math.Float32frombits(binary.LittleEndian.Uint32(basis[4*i:]))
	}
	return n
}

// feed writes an aligned face into both networks' inputs.
func (n networks) feed(crop []float32) {
	copy(n.published.Input(), crop)
	copy(n.converted.Input(), crop)
}

// cropsOnce contains the faces that crops returns.
var cropsOnce struct {
	sync.Mutex
	list [][]float32
}

// crops are the faces of the groups' photos, aligned by their eyes, as the default
// pack's embedder takes them: BGR, (x − 127) / 128.
func crops(tb testing.TB) [][]float32 {
	tb.Helper()
	cropsOnce.Lock()
	defer cropsOnce.Unlock()
	if cropsOnce.list != nil {
		return cropsOnce.list
	}
	for name := range enginetest.Groups {
		data := enginetest.Photo(tb, name)
		faces, err := enginetest.Shared(tb).ExtractLarge(context.Background(), data, 0)
		must.Do(tb, err)
		im, _, err := image.Decode(bytes.NewReader(data))
		must.Do(tb, err)
		for _, f := range faces {
			cropsOnce.list = append(cropsOnce.list, cropOf(im, f.Attributes.RightEye, f.Attributes.LeftEye))
		}
	}
	return cropsOnce.list
}

func cropOf(im image.Image, a, b engine.Point) []float32 {
	// The places of the eyes in the crop.
	const ax, ay, bx = 38.3, 51.6, 73.5
	ex, ey := float64(b.X-a.X)/(bx-ax), float64(b.Y-a.Y)/(bx-ax)
	out := make([]float32, 3*cropSide*cropSide)
	for y := range cropSide {
		for x := range cropSide {
			dx, dy := float64(x)-ax, float64(y)-ay
			red, green, blue, _ := im.At(int(float64(a.X)+dx*ex-dy*ey), int(float64(a.Y)+dx*ey+dy*ex)).RGBA()
			for c, v := range []uint32{blue, green, red} {
				out[(c*cropSide+y)*cropSide+x] = (float32(v>>8) - 127) / 128
			}
		}
	}
	return out
}

// The converted embedder returns the coordinates of the published one's output.
func TestConvertedEmbedderEqualsPublished(t *testing.T) {
	t.Parallel()
	n := openNetworks(t)
	worst, outside := 0.0, 0.0
	all := crops(t)
	for _, crop := range all {
		n.feed(crop)
		for _, r := range []*onnx.Runner{n.published, n.converted} {
			must.Do(t, r.Run())
		}
		want, norm, whole := make([]float64, n.dim), 0.0, 0.0
		for i := range want {
			for j, v := range n.published.Output(0) {
				want[i] += float64(n.basis[i*publishedTo+j]) * float64(v)
			}
			norm += want[i] * want[i]
		}
		for _, v := range n.published.Output(0) {
			whole += float64(v) * float64(v)
		}
		norm = math.Sqrt(norm)
		outside = max(outside, math.Sqrt(max(0, whole-norm*norm)/whole))
		for i, v := range n.converted.Output(0) {
			worst = max(worst, math.Abs(float64(v)-want[i])/norm)
		}
	}
	t.Logf("%d faces: largest difference of a number of a unit template %.1e; largest part outside the basis %.1e", len(all), worst, outside)
	if len(all) < 10 || worst > 1e-5 || outside > .02 {
		t.Errorf("%d faces, difference %g, outside the basis %g; want 10 or more, 1e-5 or less, .02 or less", len(all), worst, outside)
	}
}

// BenchmarkEmbedder runs the embedder as published and as converted in turns, on a
// real face and in the same kind of session (engine/onnx), and prints the time of
// both and their ratio. On a blank crop it would be another one: the published
// PRelu branches on each number's sign.
func BenchmarkEmbedder(b *testing.B) {
	n := openNetworks(b)
	n.feed(crops(b)[0])
	var spent [2]time.Duration
	for b.Loop() {
		for i, r := range []*onnx.Runner{n.published, n.converted} {
			start := time.Now()
			must.Do(b, r.Run())
			spent[i] += time.Since(start)
		}
	}
	ms := func(d time.Duration) float64 { return d.Seconds() * 1e3 / float64(b.N) }
	b.ReportMetric(ms(spent[0]), "published-ms")
	b.ReportMetric(ms(spent[1]), "converted-ms")
	b.ReportMetric(ms(spent[1])/ms(spent[0]), "ratio")
}

// runnerOf opens a model and returns a runner of it. Both close when the test ends.
func runnerOf(tb testing.TB, spec onnx.Spec) *onnx.Runner {
	tb.Helper()
	m, err := onnx.Open(spec)
	must.Do(tb, err)
	tb.Cleanup(m.Close)
	r, err := m.NewRunner()
	must.Do(tb, err)
	tb.Cleanup(r.Close)
	return r
}
