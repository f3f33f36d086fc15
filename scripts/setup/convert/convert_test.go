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
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"facet/engine/models"
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
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestEmbedderMatchesDefaultManifest(t *testing.T) {
	t.Parallel()
	got := converted(t)
	m, err := models.Parse(models.Default())
	if err != nil {
		t.Fatal(err)
	}
	for role, data := range map[models.Role][]byte{models.RoleEmbedder: got.Model, models.RoleBasis: got.Basis} {
		f, _ := m.File(role)
		if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != f.SHA256 || int64(len(data)) != f.Size {
			t.Errorf("%s: %d bytes with SHA-256 %x, want %d with %s", role, len(data), sum, f.Size, f.SHA256)
		}
	}
}

// Only PRelu, batch size and last layer may differ.
func TestEmbedderKeepsPublishedGraph(t *testing.T) {
	t.Parallel()
	before, err := readModel(published(t))
	if err != nil {
		t.Fatal(err)
	}
	after, err := readModel(converted(t).Model)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"Conv": 50, "PRelu": 33, "Add": 12, "Reshape": 1}, census(before)); diff != "" {
		t.Errorf("published graph (-want +got):\n%s", diff)
	}
	want := map[string]int{"Conv": 50 + 2*33, "Relu": 33, "Add": 12 + 33, "Flatten": 1}
	if diff := cmp.Diff(want, census(after)); diff != "" {
		t.Errorf("converted graph (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([][]int64{{-1, 3, 112, 112}, {-1, 192}}, [][]int64{after.inputs[0].dims, after.outputs[0].dims}); diff != "" {
		t.Errorf("shapes of input and output (-want +got):\n%s", diff)
	}
	// All weights but those of the last layer are the published ones.
	old := before.nodes[len(before.nodes)-2]
	for _, n := range before.nodes {
		if n.op != "Conv" || n.name == old.name {
			continue
		}
		for _, in := range n.inputs[1:] {
			if !cmp.Equal(before.tensor(in).floats, after.tensor(in).floats) {
				t.Errorf("weights %s of %s differ", in, n.name)
			}
		}
	}
}

// The basis has the first 191 singular vectors and the bias.
func TestBasisIsOrthonormal(t *testing.T) {
	t.Parallel()
	src, made := published(t), converted(t)
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
	m, err := readModel(src)
	if err != nil {
		t.Fatal(err)
	}
	last := m.nodes[len(m.nodes)-2]
	l := layer{rows: cols, cols: cols, w: m.tensor(last.inputs[1]).floats, bias: m.tensor(last.inputs[2]).floats}
	bias := make([]float64, l.rows)
	for i, b := range l.bias {
		bias[i] = float64(b)
	}
	if rest := residual(bias, basis) / math.Sqrt(svd.Dot(bias, bias)); rest > 1e-6 {
		t.Errorf("residual of the bias is %g of it, want at most 1e-6", rest)
	}
	// Singular vectors: A·Aᵀ·u = σ²·u, the values fall, and what is left when
	// they are taken out of A stretches no vector more than the last of them.
	a := columns(l)
	values := make([]float64, rows-1)
	for i := range values {
		v := gram(a, basis[i])
		values[i] = svd.Dot(v, basis[i])
		if rest := residual(v, [][]float64{basis[i]}); rest > 1e-6*values[0] {
			t.Errorf("row %d misses A·Aᵀ·u = σ²·u by %g of σ₁²", i, rest/values[0])
		}
		if i > 0 && values[i] > values[i-1]*(1+1e-6) {
			t.Errorf("σ² of row %d is %g, more than %g of the row before", i, values[i], values[i-1])
		}
	}
	x := slices.Repeat([]float64{1}, cols)
	for range 200 { // power iteration
		for _, u := range basis[:rows-1] {
			p := svd.Dot(x, u)
			for i := range x {
				x[i] -= p * u[i]
			}
		}
		if !normalise(x, 0) {
			t.Fatal("nothing is left of the matrix")
		}
		x = gram(a, x)
	}
	if left := math.Sqrt(svd.Dot(x, x)); left > values[rows-2]*(1+1e-3) {
		t.Errorf("a vector outside has σ² = %g, more than %g of the last inside", left, values[rows-2])
	}
}

// TestConvertedModelComputesProjection evaluates small models before and
// after: Conv, PRelu, Conv, Reshape on an image of one pixel.
func TestConvertedModelComputesProjection(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		src := small(rng, 3, 8, 6)
		before := src.encode()
		dim := 2 + rng.IntN(5)
		made, err := Embedder(before, dim)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		after, err := readModel(made.Model)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		x := random(rng, 3)
		full, got := evaluate(t, src, x), evaluate(t, after, x)
		if len(got) != dim || len(made.Basis) != 4*dim*len(full) {
			t.Fatalf("seed %d: %d outputs and %d bytes of basis, want %d and %d", seed, len(got), len(made.Basis), dim, 4*dim*len(full))
		}
		for r := range dim {
			want := 0.0
			for c, y := range full {
				want += float64(math.Float32frombits(binary.LittleEndian.Uint32(made.Basis[4*(r*len(full)+c):]))) * float64(y)
			}
			if math.Abs(want-float64(got[r])) > 1e-5 {
				t.Errorf("seed %d: output %d is %g, want %g", seed, r, got[r], want)
			}
		}
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

// evaluate runs a model of 1 × 1 operators on one pixel.
func evaluate(t *testing.T, m *model, x []float32) []float32 {
	t.Helper()
	values := map[string][]float32{m.inputs[0].name: x}
	for _, n := range m.nodes {
		in := values[n.inputs[0]]
		out := make([]float32, 0, len(in))
		switch n.op {
		case "Relu":
			for _, v := range in {
				out = append(out, max(v, 0))
			}
		case "PRelu":
			for i, v := range in {
				if v < 0 {
					v *= m.tensor(n.inputs[1]).floats[i]
				}
				out = append(out, v)
			}
		case "Add":
			for i, v := range in {
				out = append(out, v+values[n.inputs[1]][i])
			}
		case "Conv":
			out = convolve(m, n, in)
		case "Reshape", "Flatten":
			out = in
		default:
			t.Fatalf("operator %s", n.op)
		}
		values[n.outputs[0]] = out
	}
	return values[m.outputs[0].name]
}

func convolve(m *model, n node, in []float32) []float32 {
	w := m.tensor(n.inputs[1])
	out := make([]float32, w.dims[0])
	depthwise := len(n.attrs) == 1 // group = channels
	for r := range out {
		if len(n.inputs) == 3 {
			out[r] = m.tensor(n.inputs[2]).floats[r]
		}
		if depthwise {
			out[r] += w.floats[r] * in[r]
			continue
		}
		for c, v := range in {
			out[r] += w.floats[r*len(in)+c] * v
		}
	}
	return out
}

func census(m *model) map[string]int {
	count := make(map[string]int)
	for _, n := range m.nodes {
		count[n.op]++
	}
	return count
}

func random(rng *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	return v
}

// residual is the length of what the basis (orthonormal rows) leaves of v.
func residual(v []float64, basis [][]float64) float64 {
	rest := slices.Clone(v)
	for _, b := range basis {
		p := svd.Dot(v, b)
		for i := range rest {
			rest[i] -= p * b[i]
		}
	}
	return math.Sqrt(svd.Dot(rest, rest))
}

// gram is A·Aᵀ·x = Σ (column · x) column, of a matrix given by columns.
func gram(cols [][]float64, x []float64) []float64 {
	out := make([]float64, len(x))
	for _, c := range cols {
		p := svd.Dot(c, x)
		for i := range out {
			out[i] += p * c[i]
		}
	}
	return out
}

func columns(l layer) [][]float64 {
	cols := make([][]float64, l.cols)
	for j := range cols {
		cols[j] = make([]float64, l.rows)
		for i := range cols[j] {
			cols[j][i] = float64(l.w[i*l.cols+j])
		}
	}
	return cols
}
