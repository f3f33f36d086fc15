package onnx_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	ort "github.com/yalue/onnxruntime_go"

	"facet/engine/enginetest"
	"facet/engine/models"
	"facet/engine/onnx"
	"facet/internal/must"
)

// spec is that of the default pack's landmark network, the smallest.
func spec(t testing.TB) onnx.Spec {
	t.Helper()
	must.Do(t, onnx.Load(enginetest.Library(t), ""))
	network, err := enginetest.Pack(t).Load(models.RoleLandmarks)
	must.Do(t, err)
	return onnx.Spec{
		Name:    "landmarks",
		Network: network,
		Input:   onnx.Tensor{Shape: []int64{1, 1, 64, 64}},
		Outputs: []onnx.Tensor{{Shape: []int64{1, 136}}},
	}
}

func open(t testing.TB) (*onnx.Model, *onnx.Runner) {
	t.Helper()
	m, err := onnx.Open(spec(t))
	must.Do(t, err)
	t.Cleanup(m.Close)
	r, err := m.NewRunner()
	must.Do(t, err)
	t.Cleanup(r.Close)
	return m, r
}

func TestLoadKeepsOneLibrary(t *testing.T) {
	t.Parallel()
	path := enginetest.Library(t)
	for range 2 {
		must.Do(t, onnx.Load(path, ""))
	}
	if err := onnx.Load(path+".other", ""); err == nil {
		t.Error("another library was loaded beside the first")
	}
	if got := onnx.Version(); !strings.HasPrefix(got, "1.") {
		t.Errorf("version: got %q", got)
	}
}

func TestNetworkUnlikeSpecIsRefused(t *testing.T) {
	t.Parallel()
	f := func(change func(s *onnx.Spec)) {
		t.Helper()
		s := spec(t)
		change(&s)
		m, err := onnx.Open(s)
		if err == nil {
			m.Close()
			t.Error("opened")
			return
		}
		if !strings.Contains(err.Error(), "landmarks") {
			t.Errorf("the error does not name the network: %v", err)
		}
	}
	f(func(s *onnx.Spec) { s.Network = nil })
	f(func(s *onnx.Spec) { s.Network = []byte("not a network") })
	f(func(s *onnx.Spec) { s.Network = s.Network[:len(s.Network)/2] })
	f(func(s *onnx.Spec) { s.Input.Name = "none" })
	f(func(s *onnx.Spec) { s.Outputs[0].Name = "none" })
	f(func(s *onnx.Spec) { s.Outputs = nil })
	f(func(s *onnx.Spec) { s.Input.Shape = []int64{1, 3, 64, 64} })
	f(func(s *onnx.Spec) { s.Input.Shape = []int64{1, 1, 32, 32} })
	f(func(s *onnx.Spec) { s.Input.Shape = []int64{1, 1, 0, 64} })
	f(func(s *onnx.Spec) { s.Input.Shape = []int64{1 << 40, 1 << 40, 64, 64} })
	f(func(s *onnx.Spec) { s.Outputs[0].Shape = []int64{1, 135} })
	f(func(s *onnx.Spec) { s.Outputs[0].Shape = []int64{136} })
}

// The names that the file gives are those of ONNX Runtime, for each network of the packs.
func TestNamesAreThoseOfRuntime(t *testing.T) {
	t.Parallel()
	must.Do(t, onnx.Load(enginetest.Library(t), ""))
	files, err := filepath.Glob(filepath.Join(enginetest.Assets(t), "packs", "*", "*.onnx"))
	if err != nil || len(files) < 4 {
		t.Fatalf("%v, %v", files, err)
	}
	seen := map[string]bool{}
	for _, file := range files {
		if seen[filepath.Base(file)] {
			continue // of another pack
		}
		seen[filepath.Base(file)] = true
		network, err := os.ReadFile(file)
		must.Do(t, err)
		wantIn, wantOut, err := ort.GetInputOutputInfoWithONNXData(network)
		must.Do(t, err)
		in, out, err := onnx.PortsOf(network)
		if err != nil || !slices.Equal(in, names(wantIn)) || !slices.Equal(out, names(wantOut)) {
			t.Errorf("%s: got %v and %v (%v), want %v and %v", file, in, out, err, wantIn, wantOut)
		}
	}
}

func names(list []ort.InputOutputInfo) (out []string) {
	for _, port := range list {
		out = append(out, port.Name)
	}
	return out
}

func TestNonFiniteOutputIsRefused(t *testing.T) {
	t.Parallel()
	_, r := open(t)
	r.Input()[100] = float32(math.NaN())
	if err := r.Run(); !errors.Is(err, onnx.ErrNotFinite) {
		t.Errorf("got %v, want ErrNotFinite", err)
	}
	r.Input()[100] = 0
	if err := r.Run(); err != nil {
		t.Errorf("the runner is unusable afterwards: %v", err)
	}
}

func TestConcurrentRunnersAgree(t *testing.T) {
	t.Parallel()
	m, r := open(t)
	ramp := func(in []float32) {
		for i := range in {
			in[i] = float32(i%64) / 64
		}
	}
	ramp(r.Input())
	must.Do(t, r.Run())
	want := append([]float32(nil), r.Output(0)...)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			r, err := m.NewRunner()
			if err != nil {
				t.Error(err)
				return
			}
			defer r.Close()
			ramp(r.Input())
			for range 25 {
				if err := r.Run(); err != nil {
					t.Error(err)
					return
				}
				for i, v := range r.Output(0) {
					if math.Float32bits(v) != math.Float32bits(want[i]) {
						t.Errorf("output %d: got %v, want %v", i, v, want[i])
						return
					}
				}
			}
		})
	}
	wg.Wait()
}

func TestRunAllocatesLittle(t *testing.T) {
	_, r := open(t)
	got := testing.AllocsPerRun(50, func() {
		must.Do(t, r.Run())
	})
	if got > 10 {
		t.Errorf("got %v allocations a run, want 10 or fewer", got)
	}
}

func FuzzNames(f *testing.F) {
	f.Add([]byte("\x3a\x0a\x5a\x03\x0a\x01x\x62\x03\x0a\x01y"))
	f.Add([]byte("\x3a\xff\xff\xff\xff\x0f"))
	f.Fuzz(func(t *testing.T, network []byte) {
		in, out, err := onnx.PortsOf(network)
		if n := len(in) + len(out); err == nil && n > len(network) {
			t.Errorf("%d names in %d bytes", n, len(network))
		}
	})
}
