package bench

import (
	"facet/engine/accuracy"
	"facet/engine/score"
)

// subjects returns the scores of a gallery with subjectTemplates: the larger of best and of the score
// with the mean of the templates with which a person is enrolled.
func (m *measured) subjects(enrolled [][]int, best accuracy.PersonScore) accuracy.PersonScore {
	means := make([][]float32, len(enrolled))
	for person, own := range enrolled {
		if len(own) < score.PhotosMin {
			continue
		}
		var mean score.Mean
		for _, i := range own {
			mean.Add(m.templates[i])
		}
		means[person] = mean.Unit()
	}
	return func(probe, person int) int {
		points := best(probe, person)
		if mean := means[person]; mean != nil {
			table := m.table.OfMean(score.Kind(len(enrolled[person])))
			points = max(points, table.Score(score.Dot(m.templates[probe], mean)))
		}
		return points
	}
}
