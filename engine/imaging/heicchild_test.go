package imaging_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"facet/engine/imaging"
	"facet/engine/imaging/heif/heiftest"
	"facet/internal/must"
)

// culprit returns whose fault an error is, as the node's answers have it.
func culprit(err error) string {
	switch {
	case err == nil:
		return "nobody"
	case errors.Is(err, imaging.ErrDecode):
		return "file"
	case errors.Is(err, context.DeadlineExceeded):
		return "load"
	}
	return "node"
}

func TestEndOfDecoderHasOneCulprit(t *testing.T) {
	f := func(end int, wall time.Duration, want, text string) {
		t.Helper()
		err := imaging.EndOfChild(t.Context(), end, wall)
		if got := culprit(err); got != want || !strings.Contains(err.Error(), text) {
			t.Errorf("end %d is the fault of the %s, want %s: %v; want %q", end, got, want, err, text)
		}
	}
	f(imaging.Crashes, time.Hour, "file", "the decoder died of it")
	f(imaging.Spins, time.Hour, "file", "too much processor time")
	f(imaging.Hangs, time.Millisecond, "load", "too little processor time")
	f(imaging.IsKilled, time.Hour, "node", "can't run on this node")
	f(imaging.Fails, time.Hour, "node", "can't run on this node")
}

func TestRefusalOfDecoderIsAlwaysTheSame(t *testing.T) {
	t.Parallel()
	tile := heiftest.Coded(t, fixture(t, "grey.heic")) // which the decoder composes no grid of
	data := heiftest.File{Items: []heiftest.Item{heiftest.Grid(1, 64, 64, 2), tile}}.Bytes()
	_, first := imaging.Decode(data)
	for range 20 {
		if _, err := imaging.Decode(data); !errors.Is(err, imaging.ErrDecode) || err.Error() != first.Error() {
			t.Fatalf("got %v after %v", err, first)
		}
	}
}

// A photo whose decoder waits for its turn takes no processor time.
func TestDecodersOfHEICWaitForTurn(t *testing.T) {
	data := fixture(t, "plain.heic")
	c, err := imaging.DecodeConfig(data)
	must.Do(t, err)
	synctest.Test(t, func(t *testing.T) {
		all := int64(runtime.GOMAXPROCS(0))
		must.Do(t, imaging.Children.Acquire(t.Context(), all))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := c.DecodeInto(ctx, new(imaging.Image), data, imaging.Whole); culprit(err) != "load" {
			t.Errorf("with no turn left: %v", err)
		}
		imaging.Children.Release(all)
	})
	must.Do(t, c.DecodeInto(t.Context(), new(imaging.Image), data, imaging.Whole))
}
