package shard

import (
	"errors"
	"testing"

	"facet/engine"
	"facet/internal/id"
)

// sealedOf is a new event whose template is of that model.
func sealedOf(t *testing.T, n int, m id.Model) Event {
	t.Helper()
	key := testKey(t, 1)
	e := newEvent(key, n, axis(n))
	e.Sealed = SealFace(key, FaceRef{e.Gallery, e.Generation, e.Subject, e.Event, 0}, engine.Face{Template: axis(n), Model: m})
	return e
}

func TestProbeOfOtherModelIsRefused(t *testing.T) {
	t.Parallel()
	own, other := id.Model{1}, id.Model{2}
	s := newTestShard(t, 10)
	f := func(probe id.Model, refused bool) {
		t.Helper()
		var differ *id.ModelError
		if err := s.CheckModel(testGallery, probe); errors.As(err, &differ) != refused || (err != nil) != refused {
			t.Errorf("probe of model %s: %v, want refused: %v", probe, err, refused)
		}
	}
	f(own, false)
	f(other, false) // there is nothing to compare with
	put(t, s, sealedOf(t, 1, id.Model{}))
	f(other, false) // from before models were named
	put(t, s, sealedOf(t, 2, own))
	f(own, false)
	f(id.Model{}, false)
	f(other, true)
	s = reloaded(t, s)
	f(own, false)
	f(other, true)
}

func TestSliceOfTwoModelsIsNotSearched(t *testing.T) {
	t.Parallel()
	key := testKey(t, 1)
	for name, enter := range map[string]func(s *Shard, e Event){
		"active": func(s *Shard, e Event) { put(t, s, e) },
		"pending": func(s *Shard, e Event) {
			if _, err := s.Hold(e, FreeSlots); err != nil {
				t.Fatal(err)
			}
		},
	} {
		s := newTestShard(t, 10)
		put(t, s, sealedOf(t, 1, id.Model{1}))
		if _, err := search(s, key, axis(1)); err != nil {
			t.Fatal(err)
		}
		enter(s, sealedOf(t, 2, id.Model{2}))
		var differ *id.ModelError
		if err := s.CheckModel(testGallery, id.Model{1}); !errors.As(err, &differ) {
			t.Errorf("%s: a probe is compared all the same: %v", name, err)
		}
		if _, err := search(s, key, axis(1)); name == "active" && !errors.As(err, &differ) {
			t.Errorf("%s: searched all the same: %v", name, err)
		}
	}
}
