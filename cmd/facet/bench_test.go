package main

import "testing"

func TestBadMeasurementsAreUsageErrors(t *testing.T) {
	t.Parallel()
	f := func(want int, args ...string) {
		t.Helper()
		if got := run(args); got != want {
			t.Errorf("facet %v ends with %d, want %d", args, got, want)
		}
	}
	f(exitUsage, "bench", "accuracy")
	f(exitUsage, "bench", "identify", "--images=x", "--quality-min=NaN")
	f(exitUsage, "bench", "accuracy", "--images=x", "--quality-min=2")
	f(exitUsage, "bench", "accuracy", "--images=x", "--plot=det.png")
	f(exitUsage, "bench", "accuracy", "--images=x", "--report=accuracy.html")
	f(exitUsage, "bench", "accuracy", "extra")
	f(exitUsage, "models", "info")
	f(exitUsage, "models", "calibrate", "default")
	f(exitFailed, "bench", "accuracy", "--images="+t.TempDir())
	f(exitFailed, "models", "info", "none", "--packs="+t.TempDir())
	f(exitFailed, "models", "verify", "--packs="+t.TempDir())
}
