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
	f(cli.ExitUsage, "bench", "service", "--faces=refuse")
	f(cli.ExitUsage, "bench", "service")
	f(cli.ExitUsage, "bench", "accuracy")
	f(cli.ExitUsage, "models", "info")
	f(cli.ExitUsage, "models", "extract", "default")
	f(cli.ExitUsage, "models", "extract", "default", "--images=x", "--out=y", "--faces=largest")
	f(cli.ExitFailed, "models", "extract", "default", "--images="+t.TempDir(), "--out="+t.TempDir()+"/x.npz")
	f(cli.ExitFailed, "models", "info", "none", "--packs="+t.TempDir())
	f(cli.ExitFailed, "models", "verify", "--packs="+t.TempDir())
}
