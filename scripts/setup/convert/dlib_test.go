package convert

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"facet/engine/enginetest"
	"facet/engine/onnx"
	"facet/scripts/setup/convert/converttest"
)

// volumeOf is an image of c channels, channel after channel for each pixel, as
// TensorFlow has it.
type volumeOf struct {
	h, w, c int
	v       []float64
}

func newVolume(h, w, c int) volumeOf { return volumeOf{h, w, c, make([]float64, h*w*c)} }

func (a *volumeOf) at(y, x, c int) *float64 { return &a.v[(y*a.w+x)*a.c+c] }

// plainNet computes what face-api's network is said to compute, operator by
// operator, nothing folded or joined, in float64.
type plainNet struct {
	t *testing.T
	w weights
}

func (n plainNet) vector(name string) []float32 {
	a, ok := n.w[name]
	if !ok {
		n.t.Fatalf("no weights %q", name)
	}
	return a.values
}

func (n plainNet) conv(x volumeOf, name string, stride, pad int) volumeOf {
	f := n.w[name+"/conv/filters"]
	k, outs := int(f.dims[0]), int(f.dims[3])
	y := newVolume((x.h+2*pad-k)/stride+1, (x.w+2*pad-k)/stride+1, outs)
	bias, scale, shift := n.vector(name+"/conv/bias"), n.vector(name+"/scale/weights"), n.vector(name+"/scale/biases")
	for oy := range y.h {
		for ox := range y.w {
			sum := y.v[(oy*y.w+ox)*outs:][:outs]
			for ky := range k {
				for kx := range k {
					iy, ix := oy*stride+ky-pad, ox*stride+kx-pad
					if iy < 0 || ix < 0 || iy >= x.h || ix >= x.w {
						continue
					}
					for c := range x.c {
						v := *x.at(iy, ix, c)
						if v == 0 {
							continue
						}
						row := f.values[((ky*k+kx)*x.c+c)*outs:][:outs]
						for o, w := range row {
							sum[o] += v * float64(w)
						}
					}
				}
			}
			for o := range sum {
				sum[o] = (sum[o]+float64(bias[o]))*float64(scale[o]) + float64(shift[o])
			}
		}
	}
	return y
}

func relu(x volumeOf) volumeOf {
	for i, v := range x.v {
		x.v[i] = max(v, 0)
	}
	return x
}

// pool combines the pixels of windows of k × k.
func pool(x volumeOf, k, stride int, f func(a, b float64) float64) volumeOf {
	y := newVolume((x.h-k)/stride+1, (x.w-k)/stride+1, x.c)
	for oy := range y.h {
		for ox := range y.w {
			for c := range x.c {
				v := *x.at(oy*stride, ox*stride, c)
				for i := 1; i < k*k; i++ {
					v = f(v, *x.at(oy*stride+i/k, ox*stride+i%k, c))
				}
				*y.at(oy, ox, c) = v
			}
		}
	}
	return y
}

func (n plainNet) block(x volumeOf, name string) volumeOf {
	halve := strings.Contains(name, "down")
	stride, pad := 1, 1
	if halve {
		stride, pad = 2, 0
	}
	y := n.conv(relu(n.conv(x, name+"/conv1", stride, pad)), name+"/conv2", 1, 1)
	if halve {
		x = pool(x, 2, 2, func(a, b float64) float64 { return a + b })
		for i := range x.v {
			x.v[i] /= 4
		}
	}
	sum := newVolume(max(x.h, y.h), max(x.w, y.w), max(x.c, y.c))
	for _, part := range []volumeOf{x, y} {
		for py := range part.h {
			for px := range part.w {
				for c := range part.c {
					*sum.at(py, px, c) += *part.at(py, px, c)
				}
			}
		}
	}
	return relu(sum)
}

func (n plainNet) run(x volumeOf) []float64 {
	x = pool(relu(n.conv(x, "conv32_down", 2, 0)), 3, 2, func(a, b float64) float64 { return max(a, b) })
	for _, b := range dlibBlocks {
		x = n.block(x, b.name)
	}
	out, fc := make([]float64, dlibDim), n.vector("fc")
	for c := range x.c {
		mean := 0.0
		for i := range x.h * x.w {
			mean += x.v[i*x.c+c] / float64(x.h*x.w)
		}
		for o := range out {
			out[o] += mean * float64(fc[c*dlibDim+o])
		}
	}
	return out
}

func TestDlibEqualsPublishedNetwork(t *testing.T) {
	t.Parallel()
	index, data := converttest.Dlib(1)
	network, err := Dlib(index, data)
	if err != nil {
		t.Fatal(err)
	}
	if err := onnx.Load(enginetest.Library(t), ""); err != nil {
		t.Fatal(err)
	}
	m, err := onnx.Open(onnx.Spec{
		Name: "dlib", Network: network,
		Input:   onnx.Tensor{Shape: []int64{1, 3, dlibSide, dlibSide}},
		Outputs: []onnx.Tensor{{Shape: []int64{1, dlibDim}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	r, err := m.NewRunner()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w, err := readWeights(index, data)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(2, 2))
	x := newVolume(dlibSide, dlibSide, 3)
	for i := range x.v {
		x.v[i] = random.Float64() - .5
		r.Input()[i%3*dlibSide*dlibSide+i/3] = float32(x.v[i])
	}
	if err := r.Run(); err != nil {
		t.Fatal(err)
	}
	want, worst, largest := plainNet{t, w}.run(x), 0.0, 0.0
	for i, v := range r.Output(0) {
		worst, largest = max(worst, math.Abs(float64(v)-want[i])), max(largest, math.Abs(want[i]))
	}
	if !(largest > .01) || !(worst < 1e-5*largest) {
		t.Errorf("outputs differ by %g, the largest is %g", worst, largest)
	}
}

func TestDlibRefusesUnknownWeights(t *testing.T) {
	t.Parallel()
	index, data := converttest.Dlib(1)
	f := func(want, index string, data []byte) {
		t.Helper()
		if m, err := Dlib([]byte(index), data); !errors.Is(err, errWeights) || !strings.Contains(err.Error(), want) || m != nil {
			t.Errorf("error is %v, want one that wraps errWeights and says %q", err, want)
		}
	}
	change := func(old, now string) string {
		t.Helper()
		if !strings.Contains(string(index), old) {
			t.Fatalf("the index has no %q", old)
		}
		return strings.Replace(string(index), old, now, 1)
	}
	f("", "", data)
	f("not one group", "[]", data)
	f("not one group", `[{"paths":["a","b"],"weights":[]}]`, data)
	f("larger", strings.Repeat(" ", maxIndexBytes+1), data)
	f("larger than what is left", string(index), data[:len(data)-1])
	f("bytes too many", string(index), append([]byte{0}, data...))
	f("larger than what is left", change("[7,7,3,32]", "[7,7,3,-32]"), data)
	f("larger than what is left", change("[7,7,3,32]", "[4000000000,4000000000,4000000000]"), data)
	f("has the shape", change("[7,7,3,32]", "[7,7,32,3]"), data)
	f("8 bits", change(`"uint8"`, `"uint16"`), data)
	f("8 bits", change(`"float32"`, `"int32"`), data)
	f("there is no", change(`"conv32_down/scale/biases"`, `"other"`), data)
	f("twice", change(`"conv32_down/scale/biases"`, `"conv32_down/scale/weights"`), data)
	f("not finite", change(`"min":`, `"min":1e308,"x":`), data)
}

func FuzzDlibNeverPanics(f *testing.F) {
	f.Add([]byte(`[{"paths":["a"],"weights":[{"name":"fc","shape":[2,1],"dtype":"float32"}]}]`), []byte("12345678"))
	f.Add([]byte(`[{"paths":["a"],"weights":[{"name":"fc","shape":[2],"dtype":"float32","quantization":{"dtype":"uint8","scale":1,"min":0}}]}]`), []byte("12"))
	f.Add([]byte(`[{"paths":["a"],"weights":[{"name":"fc","shape":[],"dtype":"float32"}]}]`), []byte("1234"))
	f.Fuzz(func(t *testing.T, index, data []byte) {
		w, err := readWeights(index, data)
		if err != nil {
			if !errors.Is(err, errWeights) {
				t.Errorf("error %v does not wrap errWeights", err)
			}
			return
		}
		n := 0
		for _, a := range w {
			n += len(a.values)
		}
		if n > len(data) {
			t.Errorf("%d numbers of %d bytes", n, len(data))
		}
		if _, err := Dlib(index, data); err == nil {
			t.Error("a network of the fuzzer's")
		}
	})
}
