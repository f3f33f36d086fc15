package models

import (
	"math/rand/v2"
	"testing"

	"facet/cmd/facet/photos"
	"facet/engine"
	"facet/engine/enginetest"
	"facet/engine/imaging"
	"facet/engine/score"
	"facet/internal/must"
)

func TestSpecimensAreOfPersonsWithMates(t *testing.T) {
	t.Parallel()
	e := enginetest.Shared(t)
	folder, err := photos.Read(t.Context(), photoDir(t))
	must.Do(t, err)
	faces, err := photos.Extract(t.Context(), e, folder.Photos, photos.Choice{Middle: true}, nil)
	must.Do(t, err)
	s, err := measure(t.Context(), e, folder.Photos, faces, nil)
	must.Do(t, err)
	photographs := 0
	for _, f := range s.faces {
		if folder.Persons[folder.Photos[f.photo].Person] != "Obama" {
			t.Errorf("a face %s is of the person with one photograph", f.kind)
		}
		if f.kind == asPhotographed {
			photographs++
		}
	}
	if photographs != 2 || len(s.faces) < 4 || len(s.turned) == 0 {
		t.Errorf("%d photographs, %d faces and %d of the wrong way up", photographs, len(s.faces), len(s.turned))
	}
	again, err := measure(t.Context(), e, folder.Photos, faces, nil)
	must.Do(t, err)
	for i := range again.faces {
		if again.faces[i].Norm != s.faces[i].Norm || again.faces[i].kind != s.faces[i].kind {
			t.Errorf("a second time face %d differs", i)
		}
	}
}

// Every spoiling lowers what a comparison finds, and the stronger of the drawn ones a lot.
func TestSpoilingsSpoil(t *testing.T) {
	t.Parallel()
	e, data := enginetest.Shared(t), enginetest.Photo(t, enginetest.Obama[1])
	seen, err := e.Sightings(t.Context(), data, 0)
	must.Do(t, err)
	one := source{e: e, face: seen[0].Template}
	checkSpoilings(t, &one, data, &seen[0])
}

func checkSpoilings(t *testing.T, one *source, data []byte, own *engine.Sighting) {
	t.Helper()
	photo, err := imaging.Decode(data)
	must.Do(t, err)
	plain, err := one.sightings(t.Context(), copyOf(photo, own))
	must.Do(t, err)
	whole := middle(plain, copySide)
	if whole == nil || score.Dot(whole.Template, one.face) < .9 {
		t.Fatal("a copy that is not spoilt does not show the face")
	}
	for _, kind := range spoilings {
		least := float32(1)
		for seed := uint64(0); seed < 4 && least > .97; seed++ {
			spoilt := kind.spoil(copyOf(photo, own), rand.New(rand.NewPCG(seed, 9)))
			seen, err := one.sightings(t.Context(), spoilt)
			must.Do(t, err)
			if f := middle(seen, spoilt.Width); f == nil {
				least = 0
			} else {
				least = min(least, score.Dot(f.Template, whole.Template))
			}
		}
		if least > .97 {
			t.Errorf("%s: all copies have a cosine of %.3f or more with the face", kind.name, least)
		}
	}
	seen, err := one.sightings(t.Context(), scrambled(copyOf(photo, own), rand.New(rand.NewPCG(1, 1))))
	must.Do(t, err)
	if f := one.nearest(seen, .5); f != nil {
		t.Error("a shuffled copy shows the face")
	}
}
