package kernel

import (
	"os"
	"slices"
	"testing"
)

// FACET_KERNEL says what the processor has, when it is an emulated one. Without it the kernel is
// one of those with vector instructions.
func TestFastestKernelFitsProcessor(t *testing.T) {
	t.Parallel()
	want := []string{"neon dot product", "neon"}
	if name := os.Getenv("FACET_KERNEL"); name != "" {
		want = []string{name}
	}
	if !slices.Contains(want, active.name) {
		t.Errorf("the kernel is %q, want one of %q", active.name, want)
	}
}
