package models

import (
	"fmt"
	"math/rand/v2"

	"facet/cmd/facet/photos"
	"facet/engine"
	"facet/engine/accuracy"
	"facet/engine/score"
)

// Folds is the number of parts into which CrossFitted divides persons.
const Folds = 5

// CrossFitted returns scores that were fitted on other persons than the compared ones: the persons
// are divided at random into Folds parts, and the score of two photographs comes from a fit to the
// parts in which neither person is.
func CrossFitted(x *photos.Extracted, persons int) (accuracy.Compare, error) {
	if persons < personsMin {
		return nil, fmt.Errorf("%d persons are too few to fit scores on parts of them: it needs %d", persons, personsMin)
	}
	fold := foldsOf(persons)
	var tables [Folds][Folds]*score.Table
	for a := range Folds {
		for b := range a + 1 {
			var samples []accuracy.Sample
			var templates []engine.Template
			for i, s := range x.Samples {
				if f := fold[s.Person]; f != a && f != b {
					samples = append(samples, s)
					templates = append(templates, x.Templates[i])
				}
			}
			f, err := fitOn(samples, templates)
			if err != nil {
				return nil, err
			}
			if tables[a][b], err = f.table(); err != nil {
				return nil, err
			}
			tables[b][a] = tables[a][b]
		}
	}
	return func(i, j int) int {
		table := tables[fold[x.Samples[i].Person]][fold[x.Samples[j].Person]]
		return table.Score(score.Dot(x.Templates[i], x.Templates[j]))
	}, nil
}

// foldsOf returns the part of each person.
func foldsOf(persons int) []int {
	fold := make([]int, persons)
	for i, p := range rand.New(rand.NewPCG(splitSeed, Folds)).Perm(persons) {
		fold[p] = i % Folds
	}
	return fold
}
