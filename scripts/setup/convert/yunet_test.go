package convert_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"facet/engine"
	"facet/engine/enginetest"
	"facet/engine/imaging"
	"facet/engine/models"
	"facet/engine/onnx"
	"facet/internal/must"
	"facet/scripts/setup/convert"
)

// yunetSide is the side of the published YuNet's input.
const yunetSide = 640

// withoutSingleBlocks returns the published YuNet in a form that ONNX Runtime runs: it refuses a
// size of blocks where there is one scale.
func withoutSingleBlocks(tb testing.TB, model []byte) []byte {
	tb.Helper()
	const graph, node, initialiser = 7, 1, 5
	const dims, tensorName = 1, 8
	const inputs, operator, attribute, attributeName = 1, 4, 5, 1
	single := make(map[string]bool) // tensors with one number
	field := func(msg []byte, id protowire.Number) (list []string) {
		edit(tb, msg, func(n protowire.Number, value []byte) []byte {
			if n == id {
				list = append(list, string(value))
			}
			return value
		})
		return list
	}
	ofGraph := func(f func(id protowire.Number, value []byte) []byte) []byte {
		return edit(tb, model, func(id protowire.Number, value []byte) []byte {
			if id != graph {
				return value
			}
			return edit(tb, value, f)
		})
	}
	ofGraph(func(id protowire.Number, value []byte) []byte {
		if id == initialiser {
			if n, _, _ := protowire.ConsumeTag(value); n == dims && value[1] == 1 {
				single[field(value, tensorName)[0]] = value[2]>>3 != dims
			}
		}
		return value
	})
	changed := 0
	out := ofGraph(func(id protowire.Number, value []byte) []byte {
		if id != node || field(value, operator)[0] != "DequantizeLinear" || !single[field(value, inputs)[1]] {
			return value
		}
		changed++
		return edit(tb, value, func(id protowire.Number, value []byte) []byte {
			if id == attribute && strings.Contains(field(value, attributeName)[0], "block_size") {
				return nil
			}
			return value
		})
	})
	if changed == 0 {
		tb.Error("no block was alone")
	}
	return out
}

// yunetRunner runs a YuNet for an input of this size.
func yunetRunner(tb testing.TB, name string, network []byte, width, height int) *onnx.Runner {
	tb.Helper()
	spec := onnx.Spec{Name: name, Network: network, Input: onnx.Tensor{Shape: []int64{1, 3, int64(height), int64(width)}}}
	for _, stride := range []int{8, 16, 32} {
		for _, o := range []struct {
			name string
			each int64
		}{{"cls", 1}, {"obj", 1}, {"bbox", 4}, {"kps", 10}} {
			spec.Outputs = append(spec.Outputs, onnx.Tensor{
				Name: fmt.Sprintf("%s_%d", o.name, stride), Shape: []int64{1, int64(width / stride * (height / stride)), o.each},
			})
		}
	}
	return runnerOf(tb, spec)
}

// The converted YuNet returns what the published one returns.
func TestYuNetEqualsPublished(t *testing.T) {
	t.Parallel()
	enginetest.Shared(t) // loads ONNX Runtime
	src := published(t, "yunet_int8bq.onnx")
	made, err := convert.YuNet(src, yunetSide, yunetSide)
	must.Do(t, err)
	published, converted := yunetRunner(t, "published", withoutSingleBlocks(t, src), yunetSide, yunetSide), yunetRunner(t, "converted", made, yunetSide, yunetSide)
	worst, surest := 0., 0.
	for _, name := range []string{"face-api/sample1.jpg", "scikit-image/chelsea.png"} {
		im, err := imaging.Decode(enginetest.Photo(t, name))
		must.Do(t, err)
		var p imaging.Pyramid
		p.Reset(im)
		crop := imaging.NewImage(yunetSide, yunetSide)
		p.Sample(crop, imaging.Crop(yunetSide, yunetSide, imaging.Point{X: float64(im.Width) / 2, Y: float64(im.Height) / 2},
			float64(max(im.Width, im.Height))/yunetSide, 0), imaging.Grey)
		for _, r := range []*onnx.Runner{published, converted} {
			for i := range yunetSide * yunetSide {
				for c := range 3 { // BGR
					r.Input()[c*yunetSide*yunetSide+i] = float32(crop.Pix[3*i+2-c])
				}
			}
			must.Do(t, r.Run())
		}
		for output := range 12 {
			for i, want := range published.Output(output) {
				worst = max(worst, math.Abs(float64(converted.Output(output)[i]-want))/max(1, math.Abs(float64(want))))
				if output%4 == 0 {
					surest = max(surest, float64(want))
				}
			}
		}
	}
	t.Logf("largest difference %.1e", worst)
	if worst > 1e-4 || surest < .8 {
		t.Errorf("difference %g, the surest cell has %v; want at most 1e-4 and a face", worst, surest)
	}
}

func TestYuNetTakesAnySizeOfWholeCells(t *testing.T) {
	t.Parallel()
	enginetest.Shared(t) // loads ONNX Runtime
	src := published(t, "yunet_int8bq.onnx")
	made, err := convert.YuNet(src, 320, 256)
	must.Do(t, err)
	if err := yunetRunner(t, "converted", made, 320, 256).Run(); err != nil {
		t.Error(err)
	}
	for _, size := range [][2]int{{0, 320}, {320, -32}, {320, 240}, {4096, 320}} {
		if _, err := convert.YuNet(src, size[0], size[1]); err == nil {
			t.Errorf("%v was taken", size)
		}
	}
	for _, bad := range [][]byte{nil, src[:len(src)/2], quantised(t)} {
		if _, err := convert.YuNet(bad, 320, 256); err == nil {
			t.Errorf("%d bytes of something else were taken", len(bad))
		}
	}
}

// A pack whose detector is YuNet finds the faces that the other detector finds, but for one.
func TestYuNetFindsSampleFaces(t *testing.T) {
	t.Parallel()
	network, err := convert.YuNet(published(t, "yunet_int8bq.onnx"), 320, 256)
	must.Do(t, err)
	pack := enginetest.PackOf(t, models.Default(), map[models.Role][]byte{models.RoleDetector: network}, func(m map[string]any) {
		d := m["detector"].(map[string]any)
		d["kind"], d["minScore"], d["minTileScore"] = models.KindYuNet, .6, .6
		d["input"] = models.Input{Width: 320, Height: 256, Channels: models.BGR, Mean: []float32{0, 0, 0}, Scale: []float32{1, 1, 1}}
	})
	e := engineOf(t, pack)
	all, missed := 0, 0
	for name, count := range enginetest.Groups {
		all += count
		photo := enginetest.Photo(t, name)
		got, err := e.Extract(t.Context(), photo)
		must.Do(t, err)
		want, err := enginetest.Shared(t).Extract(t.Context(), photo)
		must.Do(t, err)
		for _, f := range want {
			a := f.Attributes
			if !slices.ContainsFunc(got, func(g engine.Face) bool {
				b := g.Attributes
				return math.Hypot(float64(a.RightEye.X-b.RightEye.X), float64(a.RightEye.Y-b.RightEye.Y)) < .1*float64(a.Face.Right-a.Face.Left) &&
					e.Compare(f.Template, g.Template) > 9000
			}) {
				t.Logf("%s: YuNet does not find the face %+v", name, a.Face)
				missed++
			}
		}
		if len(got) > count {
			t.Errorf("%s: %d faces, a person sees %d", name, len(got), count)
		}
	}
	if all < 10 || missed > 1 {
		t.Errorf("it misses %d of %d faces", missed, all)
	}
}
