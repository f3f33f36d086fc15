package engine_test

import (
	"context"
	"errors"
	"testing"

	"facet/engine"
	"facet/engine/enginetest"
	"facet/internal/must"
)

// lender is a turn that is wanted from the start. borrow is what happens while it is lent.
type lender struct {
	after  int // how many times it is not wanted
	lent   int
	borrow func(context.Context) error
}

func (l *lender) Wanted() bool {
	l.after--
	return l.after < 0 && l.lent == 0
}

func (l *lender) Lend(ctx context.Context) error {
	l.lent++
	return l.borrow(ctx)
}

// An extraction that lends its turn, after one of its steps, and the one that borrows it find the
// same faces as alone, bit for bit. This holds for an engine with the least memory, where every
// second step is tried, and for one with enough, where every seventh is.
func TestLentTurnChangesNoFace(t *testing.T) {
	t.Parallel()
	for memory, stride := range map[int64]int{0: 7, 1: 2} {
		e := enginetest.New(t, engine.Config{Workers: 1, DecodeBytes: memory})
		one, other := asJPEG(t, halved(enginetest.RGBA(t, enginetest.Behind(t)))), asPNG(t, portrait(t))
		alone := func(data []byte) []engine.Face {
			faces, err := e.Extract(t.Context(), data)
			must.Do(t, err)
			return faces
		}
		same := func(what string, got, want []engine.Face) {
			t.Helper()
			if !sameBits(got, want) {
				t.Errorf("%s: the faces are %+v, alone %+v", what, got, want)
			}
		}
		wantOne, wantOther := alone(one), alone(other)
		for after := 0; ; after += stride {
			var borrowed []engine.Face
			l := &lender{after: after, borrow: func(ctx context.Context) (err error) {
				borrowed, err = e.Extract(ctx, other)
				return err
			}}
			faces, err := e.Extract(engine.WithTurn(t.Context(), l), one)
			must.Do(t, err)
			same("lender", faces, wantOne)
			if l.lent == 0 {
				if after < 5 {
					t.Errorf("only %d steps", after)
				}
				break
			}
			same("borrower", borrowed, wantOther)
		}
	}
}

// A lender whose client goes away gives its worker back, and the engine goes on and closes.
func TestCancelledLenderReturnsItsWorker(t *testing.T) {
	t.Parallel()
	e := enginetest.New(t, engine.Config{Workers: 1})
	photo := asPNG(t, portrait(t))
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		l := &lender{borrow: func(ctx context.Context) error { cancel(); return ctx.Err() }}
		if _, err := e.Extract(engine.WithTurn(ctx, l), photo); !errors.Is(err, context.Canceled) || l.lent != 1 {
			t.Errorf("lent %d times: %v", l.lent, err)
		}
		if _, err := e.Extract(t.Context(), photo); err != nil {
			t.Error(err)
		}
	}
	e.Close()
}
