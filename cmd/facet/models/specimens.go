package models

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"

	"facet/cmd/facet/photos"
	"facet/engine"
	"facet/engine/imaging"
	"facet/engine/score"
)

// The fits of evidence, least norm and quality take some photographs of each person, copies of them
// that are spoilt, and what is surely no upright face: detections on the photographs turned, and on
// copies whose blocks are shuffled.
const (
	specimensMax    = 1500 // photographs
	specimensEach   = 4    // of one person
	specimenCopies  = 2
	specimensTurned = 700 // photographs that are turned as well
	sameFace        = .98 // cosine of two templates of one face in one photograph
	specimenSeed    = 29794
	asPhotographed  = "as photographed"
)

var wrongWays = []float64{math.Pi / 2, -math.Pi / 2, math.Pi}

// specimen is a face of a person on a photograph or on a copy.
type specimen struct {
	engine.Sighting
	// kind says how the photograph was spoilt, or asPhotographed.
	kind string
	// photo is the index of the photograph.
	photo int
}

// specimens are all sightings that the fits start from.
type specimens struct {
	faces []specimen
	// turned are detections of photographs that lie on a side or upside down, shuffled those of
	// photographs whose blocks are shuffled.
	turned, shuffled []engine.Sighting
}

// choose returns the places of the photographs to take, of persons of whom there are others.
func choose(list []photos.Photo, faces []photos.Taken) []int {
	of := make(map[int][]int)
	var persons []int
	for i, f := range faces {
		if f.Outcome != photos.Acquired {
			continue
		}
		person := list[i].Person
		if of[person] == nil {
			persons = append(persons, person)
		}
		of[person] = append(of[person], i)
	}
	r := rand.New(rand.NewPCG(specimenSeed, 0))
	r.Shuffle(len(persons), func(i, j int) { persons[i], persons[j] = persons[j], persons[i] })
	var all []int
	for _, p := range persons {
		own := of[p]
		if len(own) < 2 {
			continue
		}
		r.Shuffle(len(own), func(i, j int) { own[i], own[j] = own[j], own[i] })
		all = append(all, own[:min(len(own), specimensEach)]...)
	}
	return all[:min(len(all), specimensMax)]
}

// measure takes the specimens from the photographs, which have these faces.
func measure(ctx context.Context, e *engine.Engine, list []photos.Photo, faces []photos.Taken, screen *os.File) (*specimens, error) {
	chosen := choose(list, faces)
	parts := make([]specimens, len(chosen)) // each by one goroutine, joined in order
	err := photos.Each(ctx, len(chosen), screen, func(ctx context.Context, n int) error {
		i := chosen[n]
		one := source{e: e, place: n, photo: i, face: faces[i].Face.Template}
		if err := one.take(ctx, list[i], &parts[n]); err != nil {
			return fmt.Errorf("measure %s: %w", list[i].Name, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	all := new(specimens)
	for _, p := range parts {
		all.faces = append(all.faces, p.faces...)
		all.turned = append(all.turned, p.turned...)
		all.shuffled = append(all.shuffled, p.shuffled...)
	}
	return all, nil
}

// source is a photograph that specimens are taken from.
type source struct {
	e     *engine.Engine
	place int // among those chosen
	photo int // its index
	face  engine.Template
}

// take puts the specimens of the photograph into out: the face, spoilt copies of it, and what the
// detector finds where no upright face is.
func (s *source) take(ctx context.Context, photo photos.Photo, out *specimens) error {
	data, err := photo.Read()
	if err != nil {
		return err
	}
	seen, err := s.e.Sightings(ctx, data, 0)
	if err != nil {
		return err
	}
	own := s.nearest(seen, sameFace)
	if own == nil {
		return nil // the photograph lies on a side
	}
	out.faces = append(out.faces, specimen{*own, asPhotographed, s.photo})
	im, err := imaging.Decode(data)
	if err != nil {
		return fmt.Errorf("%w: %w", engine.ErrImage, err)
	}
	r := rand.New(rand.NewPCG(specimenSeed, uint64(s.place)+1))
	for i := range specimenCopies {
		kind := spoilings[(s.place*specimenCopies+i)%len(spoilings)]
		spoilt := kind.spoil(copyOf(im, own), r)
		seen, err := s.sightings(ctx, spoilt)
		if err != nil {
			return err
		}
		if face := middle(seen, spoilt.Width); face != nil {
			out.faces = append(out.faces, specimen{*face, kind.name, s.photo})
		}
	}
	if out.shuffled, err = s.sightings(ctx, scrambled(copyOf(im, own), r)); err != nil {
		return err
	}
	if s.place >= specimensTurned {
		return nil
	}
	for _, angle := range wrongWays {
		seen, err := s.e.Sightings(ctx, data, angle)
		if err != nil {
			return err
		}
		out.turned = append(out.turned, seen...)
	}
	return nil
}

func (s *source) sightings(ctx context.Context, im *imaging.Image) ([]engine.Sighting, error) {
	text, err := encoded(im)
	if err != nil {
		return nil, err
	}
	seen, err := s.e.Sightings(ctx, text, 0)
	if errors.Is(err, engine.ErrImage) { // too small a copy
		return nil, nil
	}
	return seen, err
}

// nearest returns the sighting that is most like the face of the photograph, if its cosine is at
// least that.
func (s *source) nearest(seen []engine.Sighting, least float32) *engine.Sighting {
	var best *engine.Sighting
	for i := range seen {
		if c := score.Dot(seen[i].Template, s.face); c >= least {
			best, least = &seen[i], c
		}
	}
	return best
}

// middle returns the first sighting near the middle of a copy of that width, where the face is.
func middle(seen []engine.Sighting, width int) *engine.Sighting {
	for i, f := range seen {
		half := float64(width) / 2
		if math.Hypot(f.Middle.X-half, f.Middle.Y-half) < half/4 {
			return &seen[i]
		}
	}
	return nil
}
