package requestlog_test

import (
	"testing"
	"testing/synctest"
	"time"

	"facet/internal/requestlog"
)

func TestBoundCountsOmittedLines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const lines = 10_000 // at once
		b, written := requestlog.NewBound(), int64(0)
		for range lines {
			if more, ok := b.Next(); ok {
				written++
				if more != nil {
					t.Errorf("an early line has %v", more)
				}
			}
		}
		if written == 0 || written > 100 {
			t.Errorf("%d lines at once", written)
		}
		time.Sleep(time.Second)
		if more, ok := b.Next(); !ok || len(more) != 2 || more[0] != "omitted" || more[1] != lines-written {
			t.Errorf("after a second: %v with %v, want %d omitted", ok, more, lines-written)
		}
		if more, ok := b.Next(); !ok || more != nil {
			t.Errorf("the next line: %v with %v", ok, more)
		}
	})
}
