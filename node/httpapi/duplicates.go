package httpapi

import (
	"context"

	"github.com/valyala/fasthttp"

	"facet/internal/id"
	"facet/router"
)

// The states of a comparison of a gallery with itself.
const (
	duplicatesRunning = "Running"
	duplicatesDone    = "Done"
)

// duplicatesBody is how far the comparison of a gallery with itself is, and a page of its pairs.
type duplicatesBody struct {
	BatchID     string     `json:"batchId"`
	Status      string     `json:"status"`
	Threshold   int        `json:"threshold"`
	Total       int        `json:"total"`
	Done        int        `json:"done"`
	LastUpdated string     `json:"lastUpdated"`
	Found       int        `json:"found"`
	Incomplete  bool       `json:"incomplete"`
	Reason      string     `json:"reason,omitzero"`
	Different   int        `json:"different,omitzero"`
	Groups      int        `json:"groups"`
	Pairs       []pairBody `json:"pairs"`
	Next        string     `json:"next,omitzero"`
}

type pairBody struct {
	Group    int               `json:"group,omitzero"` // not of different subjects
	Score    int               `json:"score,omitzero"`
	Subjects []pairSubjectBody `json:"subjects"`
}

type pairSubjectBody struct {
	ID       string `json:"id"`
	noteBody `json:",inline"`
}

// postDuplicates serves POST jobs/duplicates: body threshold.
func postDuplicates(ctx context.Context, c *call) (answer, error) {
	o, err := readObject(c.body.bytes, "threshold")
	if err != nil {
		return answer{}, err
	}
	threshold, err := o.integer("threshold", bounds{router.DuplicatesThresholdMin, router.ThresholdMax}, router.DuplicatesThresholdDefault)
	if err != nil {
		return answer{}, err
	}
	w, err := c.write()
	if err != nil {
		return answer{}, err
	}
	service, err := c.intend()
	if err != nil {
		return answer{}, err
	}
	batch, err := service.BeginDuplicates(ctx, c.access, w, threshold)
	return answer{fasthttp.StatusOK, batchBody{batch.String()}}, err
}

// getDuplicates serves GET jobs/duplicates.
func getDuplicates(ctx context.Context, c *call) (answer, error) {
	after, length, err := pairsPage(c)
	if err != nil {
		return answer{}, err
	}
	d, err := c.service.Duplicates(ctx, c.access, after, length)
	if err != nil {
		return answer{}, err
	}
	body := duplicatesBody{
		BatchID: d.Batch.String(), Status: duplicatesRunning, Threshold: d.Threshold, Total: d.Blocks, Done: d.Compared,
		LastUpdated: wireTime(d.LastUpdated), Found: d.Found, Incomplete: d.Incomplete, Reason: d.Reason,
		Different: d.Different, Groups: d.Groups, Pairs: wirePairs(d.Pairs), Next: d.Next,
	}
	if d.Compared == d.Blocks {
		body.Status = duplicatesDone
	}
	return answer{fasthttp.StatusOK, body}, nil
}

// pairsPage reads which page of pairs is wanted: query after and length.
func pairsPage(c *call) (after string, length int, err error) {
	all, err := parameters(c.query)
	if err != nil {
		return "", 0, err
	}
	length, err = wholeParameter(all, "length", bounds{1, router.DuplicatesPageMax}, router.DuplicatesPageMax)
	after, follows := all["after"]
	if err == nil && follows && after == "" {
		err = invalid("", "after must not be empty; leave it out for the first page.")
	}
	return after, length, err
}

func wirePairs(pairs []router.DuplicatePair) []pairBody {
	list := make([]pairBody, len(pairs))
	for i, p := range pairs {
		list[i] = pairBody{Group: p.Group, Score: p.Score}
		for _, s := range p.Subjects {
			list[i].Subjects = append(list[i].Subjects, pairSubjectBody{s.Subject.String(), wireNote(s.Note)})
		}
	}
	return list
}

// deleteDuplicates serves DELETE jobs/duplicates.
func deleteDuplicates(ctx context.Context, c *call) (answer, error) {
	service, err := c.intend()
	if err != nil {
		return answer{}, err
	}
	return answer{fasthttp.StatusNoContent, nil}, service.EndDuplicates(ctx, c.access)
}

// differentBody is a page of the pairs of subjects that are different people.
type differentBody struct {
	Total int        `json:"total"`
	Pairs []pairBody `json:"pairs"`
	Next  string     `json:"next,omitzero"`
}

// getDifferent serves GET jobs/duplicates/different.
func getDifferent(ctx context.Context, c *call) (answer, error) {
	after, length, err := pairsPage(c)
	if err != nil {
		return answer{}, err
	}
	list, total, next, err := c.service.Different(ctx, c.access, after, length)
	return answer{fasthttp.StatusOK, differentBody{total, wirePairs(list), next}}, err
}

// putDifferent serves PUT jobs/duplicates/different/{subjectId}/{otherId}.
func putDifferent(ctx context.Context, c *call) (answer, error) {
	a, b, err := c.twoSubjects(ctx)
	if err != nil {
		return answer{}, err
	}
	service, err := c.intend()
	if err != nil {
		return answer{}, err
	}
	return answer{status: fasthttp.StatusNoContent}, service.SetDifferent(ctx, c.access, a, b)
}

// deleteDifferent serves DELETE jobs/duplicates/different/{subjectId}/{otherId}.
func deleteDifferent(ctx context.Context, c *call) (answer, error) {
	a, b, err := c.twoSubjects(ctx)
	if err != nil {
		return answer{}, err
	}
	service, err := c.intend()
	if err != nil {
		return answer{}, err
	}
	return answer{status: fasthttp.StatusNoContent}, service.UnsetDifferent(ctx, c.access, a, b)
}

// twoSubjects returns the subjects that a path names.
func (c *call) twoSubjects(ctx context.Context) (a, b id.Subject, err error) {
	if a, err = c.subject(ctx, c.parameters[0]); err == nil {
		b, err = c.subject(ctx, c.parameters[1])
	}
	return a, b, err
}
