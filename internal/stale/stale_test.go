package stale_test

import (
	"testing"

	"facet/internal/stale"
)

func TestBuildWithTagOverwritesMemory(t *testing.T) {
	t.Parallel()
	pix, numbers := make([]uint8, 3*40*30), make([]float32, 100)
	stale.Picture(pix, 40, 30, 3)
	stale.Fill(numbers)
	written := 0
	for _, v := range pix {
		if v != 0 {
			written++
		}
	}
	for _, v := range numbers {
		if v != 0 {
			written++
		}
	}
	if want := len(pix); stale.On && written < want*9/10 || !stale.On && written > 0 {
		t.Errorf("%d of %d values are written; the tag is set: %v", written, len(pix)+len(numbers), stale.On)
	}
}

func BenchmarkFillWithoutTag(b *testing.B) {
	if stale.On {
		b.Skip("measures the build without the tag stale")
	}
	numbers := make([]float32, 1<<20)
	for b.Loop() {
		stale.Fill(numbers)
	}
}
