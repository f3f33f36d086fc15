package kernel

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"facet/internal/must"
	"facet/shard/scan"
)

func TestStoppedSearchEndsAlone(t *testing.T) {
	t.Parallel()
	const dim = 8
	r := rand.New(rand.NewPCG(2, 11))
	w := newTwin(t, dim)
	w.fill(t, r, 20_000)
	why := errors.New("enough")
	asked := 0
	stop := func() error {
		if asked++; asked >= 13 {
			return why
		}
		return nil
	}
	q := scan.Query{Probe: unit(r, dim), Limit: 10}
	if _, err := stopped(w, q, stop); !errors.Is(err, why) || asked != 13 {
		t.Errorf("asked %d times, then error %v", asked, err)
	}
	want, err := w.m.Search(w.table, q)
	must.Do(t, err)
	for _, count := range []int{1, 16} { // of a pass of sixteen
		requests := make([]request, laneCount)
		for i := range requests {
			requests[i].query = q
			if i < count {
				requests[i].stop = stop
			}
		}
		searches, err := w.m.searchAll(w.table, requests, &active)
		must.Do(t, err)
		for i, s := range searches {
			got, err := s.result()
			if i < count && !errors.Is(err, why) || i >= count && (err != nil || !slices.Equal(got, want)) {
				t.Errorf("search %d of a pass where %d are stopped: %v, error %v", i, count, got, err)
			}
		}
	}
}

// stopped searches until stop says so.
func stopped(w *twin, q scan.Query, stop func() error) ([]scan.Hit, error) {
	s, err := w.m.newSearch(w.table, &request{query: q, stop: stop}, &active)
	if err != nil {
		return nil, err
	}
	w.m.pass([]*search{s}, nil)
	return s.result()
}
