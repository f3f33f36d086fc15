package convert

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"facet/engine/models"
	"facet/internal/must"
	"facet/internal/svd"
)

var publishedFile = filepath.Join("..", "..", "..", "assets", "cache", "fr_feature.onnx")

// published reads the embedder as published, which the set-up keeps.
func published(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile(publishedFile)
	if err != nil {
		t.Fatalf("%v (go run ./scripts/setup fetches it)", err)
	}
	return data
}

// conversion is made once for all tests: it takes a second.
var conversion = sync.OnceValues(func() (Result, error) {
	data, err := os.ReadFile(publishedFile)
	if err != nil {
		return Result{}, err
	}
	return Embedder(data, 192)
})

func converted(t testing.TB) Result {
	t.Helper()
	made, err := conversion()
	must.Do(t, err)
	return made
}

func TestEmbedderMatchesDefaultManifest(t *testing.T) {
	t.Parallel()
	got := converted(t)
	m, err := models.Parse(models.Default())
	must.Do(t, err)
	for role, data := range map[models.Role][]byte{models.RoleEmbedder: got.Model, models.RoleBasis: got.Basis} {
		f, _ := m.File(role)
		if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != f.SHA256 || int64(len(data)) != f.Size {
			t.Errorf("%s: %d bytes with SHA-256 %x, want %d with %s", role, len(data), sum, f.Size, f.SHA256)
		}
	}
}

// The basis has the bias and, as package svd's tests show, the first singular vectors.
func TestBasisIsOrthonormal(t *testing.T) {
	t.Parallel()
	made := converted(t)
	const rows, cols = 192, 512
	basis := make([][]float64, rows)
	for r := range basis {
		basis[r] = make([]float64, cols)
		for c := range basis[r] {
			basis[r][c] = float64(math.Float32frombits(binary.LittleEndian.Uint32(made.Basis[4*(r*cols+c):])))
		}
	}
	worst := 0.0
	for i := range basis {
		for j := range basis[:i+1] {
			want := 0.0
			if i == j {
				want = 1
			}
			worst = max(worst, math.Abs(svd.Dot(basis[i], basis[j])-want))
		}
	}
	if worst > 1e-7 { // float32 rounding
		t.Errorf("inner products are off by %g, want at most 1e-7", worst)
	}
	m, err := readModel(published(t))
	must.Do(t, err)
	last := m.nodes[len(m.nodes)-2]
	rest := make([]float64, cols)
	for i, b := range m.tensor(last.inputs[2]).floats {
		rest[i] = float64(b)
	}
	length := svd.Dot(rest, rest)
	for _, b := range basis {
		p := svd.Dot(rest, b)
		for i := range rest {
			rest[i] -= p * b[i]
		}
	}
	if left := math.Sqrt(svd.Dot(rest, rest) / length); left > 1e-6 {
		t.Errorf("residual of the bias is %g of it, want at most 1e-6", left)
	}
}

func TestEmbedderRefusesUnknownModels(t *testing.T) {
	t.Parallel()
	f := func(want string, dim int, change func(m *model)) {
		t.Helper()
		m := small(rand.New(rand.NewPCG(1, 2)), 3, 8, 6)
		change(m)
		_, err := Embedder(m.encode(), dim)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want one with %q", err, want)
		}
	}
	f("dimension 7", 7, func(*model) {})
	f("dimension 1", 1, func(*model) {})
	f("does not end with", 4, func(m *model) { m.nodes = m.nodes[:2] })
	f("fewer than two", 4, func(m *model) { m.nodes = nil })
	f("not 1 × 1 with a bias", 4, func(m *model) { m.tensor("w2").dims = []int64{1, 6, 2, 4} })
	f("not to rows of 6", 4, func(m *model) { m.tensor("shape").ints = []int64{2, 3} })
	f("used elsewhere", 4, func(m *model) { m.nodes[0].inputs[2] = "b2" })
	f("not finite", 4, func(m *model) { m.tensor("w2").floats[3] = float32(math.NaN()) })
	f("not finite", 4, func(m *model) { m.tensor("b2").floats[0] = float32(math.Inf(1)) })
	f("rank", 6, func(m *model) { clear(m.tensor("w2").floats) })
	f("bias adds nothing", 4, func(m *model) { clear(m.tensor("b2").floats) })
	f("slope", 4, func(m *model) { m.tensor("a1").dims = []int64{8} })
	f("four dimensions", 4, func(m *model) { m.inputs[0].dims = []int64{1, 3} })
	f("number of elements", 4, func(m *model) { m.tensor("w1").dims[0] = 9 })
	f("number of elements", 4, func(m *model) { m.tensor("w1").dims[0] = -8 })
	if _, err := Embedder(make([]byte, maxModelBytes+1), 4); err == nil || !strings.Contains(err.Error(), "larger") {
		t.Errorf("error is %v, want one about the size", err)
	}
}

func FuzzEmbedder(f *testing.F) {
	rng := rand.New(rand.NewPCG(3, 4))
	f.Add(small(rng, 3, 4, 5).encode(), 3)
	f.Add(small(rng, 1, 1, 2).encode(), 2)
	f.Add([]byte{}, 2)
	f.Add([]byte{0x3a, 0xff, 0xff, 0xff, 0xff, 0x0f}, 2)
	f.Fuzz(func(t *testing.T, data []byte, dim int) {
		if len(data) > 1<<16 {
			return // what a larger layer costs is not the question here
		}
		made, err := Embedder(data, dim)
		if err != nil {
			return
		}
		m, err := readModel(made.Model)
		if err != nil {
			t.Fatalf("the converted model can't be read: %v", err)
		}
		if !bytes.Equal(m.encode(), made.Model) {
			t.Error("the converted model changes when it is read and written")
		}
		if again, err := Embedder(data, dim); err != nil || !bytes.Equal(again.Model, made.Model) {
			t.Errorf("a second conversion gives other bytes, error %v", err)
		}
	})
}

// small is Conv(in → mid), PRelu, Conv(mid → out), Reshape, all 1 × 1.
func small(rng *rand.Rand, in, mid, out int) *model {
	a := random(rng, mid)
	for i := range a {
		a[i] += .3 // some slopes above 1, as in the real model
	}
	i, m, o := int64(in), int64(mid), int64(out)
	return &model{
		irVersion: 7, opset: 9, name: "small",
		nodes: []node{
			{op: "Conv", name: "conv1", inputs: []string{"x", "w1", "b1"}, outputs: []string{"c1"}},
			{op: "PRelu", name: "prelu", inputs: []string{"c1", "a1"}, outputs: []string{"p1"}},
			{op: "Conv", name: "conv2", inputs: []string{"p1", "w2", "b2"}, outputs: []string{"c2"}},
			{op: "Reshape", name: "reshape", inputs: []string{"c2", "shape"}, outputs: []string{"y"}},
		},
		tensors: []tensor{
			{name: "w1", dims: []int64{m, i, 1, 1}, floats: random(rng, in*mid)},
			{name: "b1", dims: []int64{m}, floats: random(rng, mid)},
			{name: "a1", dims: []int64{m, 1, 1}, floats: a},
			{name: "w2", dims: []int64{o, m, 1, 1}, floats: random(rng, mid*out)},
			{name: "b2", dims: []int64{o}, floats: random(rng, out)},
			{name: "shape", dims: []int64{2}, ints: []int64{1, o}},
		},
		inputs:  []value{{name: "x", dims: []int64{1, i, 1, 1}}},
		outputs: []value{{name: "y", dims: []int64{1, o}}},
	}
}

func random(rng *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	return v
}
