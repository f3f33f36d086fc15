package witness_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"facet/cmd/facet/auditing"
	"facet/cmd/facet/witness"
)

// An alarm of one log does not keep the witness from following the other, and shows at the end.
func TestRunFollowsEachLog(t *testing.T) {
	t.Parallel()
	bad, good := serve(t, 1), serve(t, 2)
	bad.grow(t, 300)
	good.grow(t, 300)
	w, cfg := open(t, t.TempDir(), bad, good)
	ctx, stop := context.WithCancel(t.Context())
	var ended error
	var wg sync.WaitGroup
	wg.Go(func() { ended = w.Run(ctx) })
	wait := func(l *served) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
			if got, err := auditing.ReadWitnessed(cfg.State, l.Key, cfg.Key.Public); err == nil && got.Tree == l.Tree(t) {
				return
			}
			if time.Now().After(end) {
				t.Fatal("not cosigned")
			}
		}
	}
	wait(bad)
	wait(good)
	fork(t, bad.Log, 299, 400).Write(t, bad.dir)
	for n := 301; n < 310; n++ {
		good.grow(t, n)
		wait(good)
	}
	time.Sleep(200 * time.Millisecond)
	stop()
	wg.Wait()
	if !errors.Is(ended, witness.ErrAlarm) || strings.Contains(ended.Error(), good.Origin) {
		t.Errorf("Run ends with %v", ended)
	}
	seen(t, cfg, bad.Log)
}
