package engine

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestReleaserKeepsItsTimes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		takes time.Duration
		want  []time.Duration // when releases begin
	}{
		"fast": {10 * time.Millisecond, []time.Duration{2000, 7010, 12_020, 17_030}},
		"slow": {200 * time.Millisecond, []time.Duration{2000, 12_200}},
		"hung": {3 * time.Second, []time.Duration{2000}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var got []time.Duration
				r := newReleaser(func() {
					got = append(got, time.Since(began)/time.Millisecond)
					time.Sleep(c.takes)
				})
				for time.Since(began) < 20*time.Second { // steady traffic
					r.soon()
					time.Sleep(100 * time.Millisecond)
				}
				r.stop()
				synctest.Wait()
				if !slices.Equal(got, c.want) {
					t.Errorf("releases began after %d ms, want %d", got, c.want)
				}
			})
		})
	}
}

// The garbage of an image that ends during a release needs another one.
func TestReleaserServesImageDuringRelease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		releases := 0
		r := newReleaser(func() {
			releases++
			time.Sleep(100 * time.Millisecond)
		})
		r.soon()
		time.Sleep(releaseAfter + 50*time.Millisecond)
		r.soon()
		time.Sleep(time.Minute)
		if releases != 2 {
			t.Errorf("got %d releases, want 2", releases)
		}
	})
}
