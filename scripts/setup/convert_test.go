package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"image"
	_ "image/jpeg"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"facet/engine"
	"facet/engine/enginetest"
	"facet/engine/models"
	"facet/engine/onnx"
	"facet/internal/must"
)

// cached returns the path of a model as set-up fetched it.
func cached(tb testing.TB, name string) string {
	tb.Helper()
	return filepath.Join(enginetest.Assets(tb), "cache", name)
}

func read(tb testing.TB, file string) []byte {
	tb.Helper()
	data, err := os.ReadFile(file)
	must.Do(tb, err)
	return data
}

// converts runs the Python of the tests, which has the converter's packages.
func converts(tb testing.TB, args ...string) {
	tb.Helper()
	if out, err := exec.Command(filepath.Join(enginetest.Assets(tb), "venv", "bin", "python"), args...).CombinedOutput(); err != nil {
		tb.Fatalf("%v: %s", err, out)
	}
}

// Each conversion gives the bytes of the lock file, on every machine.
func TestConversionsGiveLockedBytes(t *testing.T) {
	t.Parallel()
	l, err := parseLock(readLock(t))
	must.Do(t, err)
	s := &setup{assets: t.TempDir(), out: new(bytes.Buffer)}
	must.Do(t, os.Symlink(filepath.Join(enginetest.Assets(t), "cache"), filepath.Join(s.assets, "cache")))
	for i := range l.Conversions {
		c := &l.Conversions[i]
		must.Do(t, s.convert(t.Context(), c, filepath.Join(enginetest.Assets(t), "venv", "bin", "python"), t.TempDir()))
		if ok, err := present(s.assets, c.Model); err != nil || !ok {
			t.Errorf("%s is not there: %v", c.Model.To, err)
		}
	}
}

func TestOtherModelsAreNotConverted(t *testing.T) {
	t.Parallel()
	f := func(want string, args ...string) {
		t.Helper()
		args = append([]string{"convert.py"}, args...)
		out, err := exec.Command(filepath.Join(enginetest.Assets(t), "venv", "bin", "python"), args...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) || strings.Contains(string(out), "Traceback") {
			t.Errorf("%q: %v: %s, want %q", args, err, out, want)
		}
	}
	to, torn := filepath.Join(t.TempDir(), "out.onnx"), filepath.Join(t.TempDir(), "torn.onnx")
	data := read(t, cached(t, "yunet_int8bq.onnx"))
	must.Do(t, os.WriteFile(torn, data[:len(data)/2], 0o600))
	mobile, yunet := cached(t, "fr_feature.onnx"), cached(t, "yunet_int8bq.onnx")
	f("usage: convert.py")
	f("usage: convert.py", "sface", mobile)
	f("no Sub here", "sface", mobile, to)
	f("convert.py: ", "sface", torn, to)
	f("convert.py: ", "sface", filepath.Join(t.TempDir(), "none"), to)
	f("another end", "mobilefacenet", yunet, torn, to)
	f("it has the outputs", "yunet", mobile, to, "320", "256")
	for _, size := range [][2]string{{"0", "320"}, {"320", "-32"}, {"320", "240"}, {"4096", "320"}} {
		f("multiples of 32", "yunet", yunet, to, size[0], size[1])
	}
	if _, err := os.Stat(to); err == nil {
		t.Error("a model was written")
	}
}

const sfaceDim = 128

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
	n.published = runner(tb, "published", read(tb, cached(tb, "fr_feature.onnx")), publishedTo)
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

// runner opens an embedder.
func runner(tb testing.TB, name string, network []byte, dim int) *onnx.Runner {
	tb.Helper()
	return runnerOf(tb, onnx.Spec{
		Name: name, Network: network,
		Input:   onnx.Tensor{Shape: []int64{1, 3, cropSide, cropSide}},
		Outputs: []onnx.Tensor{{Shape: []int64{1, int64(dim)}}},
	})
}

// variant returns the i-th crop (BGR, (x − 127) / 128) as values of RGB: as it is, mirrored, or of less
// contrast.
func variant(i int, crop []float32) []float32 {
	const area = cropSide * cropSide
	at := func(c, y, x int) float32 { return crop[(2-c)*area+y*cropSide+x]*128 + 127 }
	f := []func(c, y, x int) float32{
		at,
		func(c, y, x int) float32 { return at(c, y, cropSide-1-x) },
		func(c, y, x int) float32 { return 100 + at(c, y, x)/4 },
	}[i%3]
	v := make([]float32, 3*area)
	for i := range v {
		v[i] = f(i/area, i%area/cropSide, i%cropSide)
	}
	return v
}

// The converted SFace returns what the published one returns.
func TestSFaceEqualsPublished(t *testing.T) {
	t.Parallel()
	all := crops(t) // loads ONNX Runtime
	made, err := os.ReadFile(filepath.Join(enginetest.Assets(t), "packs", "sface", "sface_128.onnx"))
	must.Do(t, err)
	// Without prepared weights the graph has an input for each of them, which ONNX Runtime wants to be given.
	const onlyInput = "import onnx, sys; m = onnx.load(sys.argv[1]); del m.graph.input[1:]; onnx.save(m, sys.argv[2])"
	runs := filepath.Join(t.TempDir(), "runs.onnx")
	converts(t, "-c", onlyInput, cached(t, "sface_int8bq.onnx"), runs)
	src, err := os.ReadFile(runs)
	must.Do(t, err)
	published, converted := runner(t, "published", src, sfaceDim), runner(t, "converted", made, sfaceDim)
	worst := 0.
	for n, crop := range all {
		values := variant(n, crop)
		copy(published.Input(), values)
		for i, v := range values {
			converted.Input()[i] = (v - 127.5) / 128
		}
		for _, r := range []*onnx.Runner{published, converted} {
			must.Do(t, r.Run())
		}
		norm := 0.
		for _, v := range published.Output(0) {
			norm += float64(v) * float64(v)
		}
		for i, v := range converted.Output(0) {
			worst = max(worst, math.Abs(float64(v-published.Output(0)[i]))/math.Sqrt(norm))
		}
	}
	t.Logf("%d faces: largest difference of a number of a unit template %.1e", len(all), worst)
	if len(all) < 10 || worst > 1e-5 {
		t.Errorf("%d faces, difference %g; want 10 or more, 1e-5 or less", len(all), worst)
	}
}

// A pack whose detector is YuNet finds the faces that the other detector finds, but for one.
func TestYuNetFindsSampleFaces(t *testing.T) {
	t.Parallel()
	made := filepath.Join(t.TempDir(), "yunet.onnx")
	converts(t, "convert.py", "yunet", cached(t, "yunet_int8bq.onnx"), made, "320", "256")
	network, err := os.ReadFile(made)
	must.Do(t, err)
	pack := enginetest.PackOf(t, models.Default(), map[models.Role][]byte{models.RoleDetector: network}, func(m map[string]any) {
		d := m["detector"].(map[string]any)
		d["kind"], d["minScore"], d["minTileScore"] = models.KindYuNet, .6, .6
		d["input"] = models.Input{Width: 320, Height: 256, Channels: models.BGR, Mean: []float32{0, 0, 0}, Scale: []float32{1, 1, 1}}
	})
	e := enginetest.Of(t, pack)
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
