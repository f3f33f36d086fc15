package main

import (
	"testing"

	"facet/cmd/facet/cli"
)

func TestBadMeasurementsAreUsageErrors(t *testing.T) {
	t.Parallel()
	f := func(want int, args ...string) {
		t.Helper()
		if got := run(args); got != want {
			t.Errorf("facet %v ends with %d, want %d", args, got, want)
		}
	}
	f(cli.ExitUsage, "bench", "accuracy")
	f(cli.ExitUsage, "bench", "identify", "--images=x", "--quality-min=NaN")
	f(cli.ExitUsage, "bench", "accuracy", "--images=x", "--quality-min=2")
	f(cli.ExitUsage, "bench", "accuracy", "--images=x", "--plot=det.png")
	f(cli.ExitUsage, "bench", "accuracy", "--images=x", "--report=accuracy.html")
	f(cli.ExitUsage, "bench", "identify", "--images=x", "--faces=largest")
	f(cli.ExitUsage, "bench", "accuracy", "--images=x", "--faces=refuse")
	f(cli.ExitUsage, "bench", "service", "--faces=refuse")
	f(cli.ExitUsage, "bench", "accuracy", "extra")
	f(cli.ExitUsage, "models", "info")
	f(cli.ExitUsage, "models", "calibrate", "default")
	f(cli.ExitFailed, "bench", "accuracy", "--images="+t.TempDir())
	f(cli.ExitFailed, "models", "info", "none", "--packs="+t.TempDir())
	f(cli.ExitFailed, "models", "verify", "--packs="+t.TempDir())
}
