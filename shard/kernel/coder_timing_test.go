package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"facet/internal/must"
)

// BenchmarkPrepare encodes templates, and BenchmarkAdd puts them into a matrix too.
func BenchmarkPrepare(b *testing.B) {
	for _, dim := range []int{128, 192, 512} {
		for _, power := range []float64{0, .5} {
			for _, k := range coders() {
				b.Run(fmt.Sprintf("%d numbers/power %v/%s", dim, power, k.name), func(b *testing.B) {
					r := rand.New(rand.NewPCG(1, 2))
					w := newSuitedTwin(b, dim, spectrumOf(dim, func() []float32 { return tapered(r, dim, power) }))
					var p Prepared
					v := tapered(r, dim, power)
					must.Do(b, w.m.Prepare(&p, v))
					p.enc.coder = &k
					for b.Loop() {
						must.Do(b, w.m.Prepare(&p, v))
					}
				})
			}
		}
	}
}

func BenchmarkAdd(b *testing.B) {
	for _, dim := range []int{128, 192, 512} {
		b.Run(fmt.Sprintf("%d numbers", dim), func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 2))
			w := newSuitedTwin(b, dim, spectrumOf(dim, func() []float32 { return tapered(r, dim, .5) }))
			const n = 20_000
			vectors := make([][]float32, 200)
			for i := range vectors {
				vectors[i] = tapered(r, dim, .5)
			}
			i, owner := 0, w.own(new(event))
			for b.Loop() {
				if i%n == 0 {
					w.m.Free()
				}
				if _, err := w.m.Add(owner, vectors[i%len(vectors)]); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}
