package snapshots

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"facet/internal/must"
)

// A start has no processor to spare: nothing is verified before there is a free turn.
func TestScrubWaitsForTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := filledShelf(t, 2)
		names, err := filepath.Glob(filepath.Join(SegmentsDir(s.dir), "*.seg"))
		if err != nil || len(names) != 2 {
			t.Fatal(names, err)
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			must.Do(t, err)
			b[len(b)/3] ^= 1
			must.Do(t, os.WriteFile(name, b, 0o600))
		}
		turns, stop := make(chan struct{}, 1), make(chan struct{})
		turns <- struct{}{}
		go s.Scrub(turns, stop)
		time.Sleep(time.Hour)
		if s.damaged.Load() > 0 {
			t.Error("a segment was verified without a turn")
		}
		<-turns
		time.Sleep(3 * scrubPause)
		synctest.Wait()
		if damaged := s.damaged.Load(); damaged != 2 || len(turns) > 0 {
			t.Errorf("%d damaged segments were found, want 2; %d turns are taken, want none", damaged, len(turns))
		}
		close(stop)
		synctest.Wait()
	})
}
