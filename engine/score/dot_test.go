package score_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"facet/engine/score"
)

// lanes is the definition, written as the documentation states it: zero padding,
// sixteen lanes, a tree.
func lanes(a, b []float32) float32 {
	n := (len(a) + 15) / 16 * 16
	x, y := make([]float32, n), make([]float32, n)
	copy(x, a)
	copy(y, b)
	var lane [16]float32
	for i := range x {
		product := float32(x[i] * y[i])
		lane[i%16] = float32(lane[i%16] + product)
	}
	for _, w := range []int{8, 4, 2, 1} {
		for j := range w {
			lane[j] = float32(lane[j] + lane[j+w])
		}
	}
	return lane[0]
}

func vector(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

func TestDotFollowsStatedOrder(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 600 {
		a, b := vector(r, n), vector(r, n)
		got, want := score.Dot(a, b), lanes(a, b)
		if math.Float32bits(got) != math.Float32bits(want) {
			t.Fatalf("length %d: got %x, want %x", n, math.Float32bits(got), math.Float32bits(want))
		}
		if swapped := score.Dot(b, a); math.Float32bits(swapped) != math.Float32bits(got) {
			t.Fatalf("length %d: %x one way, %x the other", n, math.Float32bits(got), math.Float32bits(swapped))
		}
	}
}

func TestFusedMultiplyAddWouldDiffer(t *testing.T) {
	t.Parallel()
	// 1+2⁻¹² squared is 1+2⁻¹¹+2⁻²⁴: rounded it loses the last bit, fused it keeps it.
	x := float32(1 + 1.0/4096)
	a := make([]float32, 32)
	b := make([]float32, 32)
	a[0], b[0] = -1, 1+1.0/2048
	a[16], b[16] = x, x
	if got := score.Dot(a, b); got != 0 {
		t.Fatalf("got %v, want 0: a product was not rounded", got)
	}
}

func TestDotRefusesUnequalLengths(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Fatal("no panic")
		}
	}()
	score.Dot(make([]float32, 16), make([]float32, 17))
}

func FuzzDot(f *testing.F) {
	f.Add([]byte{0, 0, 128, 63, 0, 0, 0, 64})
	f.Add(make([]byte, 8*17))
	f.Fuzz(func(t *testing.T, raw []byte) {
		n := min(len(raw)/8, 1024)
		a, b := make([]float32, n), make([]float32, n)
		for i := range n {
			a[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[8*i:]))
			b[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[8*i+4:]))
		}
		got, want := score.Dot(a, b), lanes(a, b)
		bothNaN := got != got && want != want // a NaN's payload is not promised
		if !bothNaN && math.Float32bits(got) != math.Float32bits(want) {
			t.Fatalf("got %x, want %x", math.Float32bits(got), math.Float32bits(want))
		}
	})
}

func BenchmarkDot192(b *testing.B) {
	r := rand.New(rand.NewPCG(5, 6))
	x, y := vector(r, 192), vector(r, 192)
	b.SetBytes(192 * 4)
	b.ReportAllocs()
	for b.Loop() {
		score.Dot(x, y)
	}
}
