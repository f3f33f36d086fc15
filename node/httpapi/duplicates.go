package httpapi

import (
	"context"

	"github.com/valyala/fasthttp"

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
	Groups      int        `json:"groups"`
	Pairs       []pairBody `json:"pairs"`
	Next        string     `json:"next,omitzero"`
}

type pairBody struct {
	Group    int               `json:"group"`
	Score    int               `json:"score"`
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
	batch, err := c.service.BeginDuplicates(ctx, c.access, w, threshold)
	return answer{fasthttp.StatusOK, batchBody{batch.String()}}, err
}

// getDuplicates serves GET jobs/duplicates.
func getDuplicates(ctx context.Context, c *call) (answer, error) {
	all, err := parameters(c.query)
	if err != nil {
		return answer{}, err
	}
	length, err := wholeParameter(all, "length", bounds{1, router.DuplicatesPageMax}, router.DuplicatesPageMax)
	if err != nil {
		return answer{}, err
	}
	after, follows := all["after"]
	if follows && after == "" {
		return answer{}, invalid("", "after must not be empty; leave it out for the first page.")
	}
	d, err := c.service.Duplicates(ctx, c.access, after, length)
	if err != nil {
		return answer{}, err
	}
	body := duplicatesBody{
		BatchID: d.Batch.String(), Status: duplicatesRunning, Threshold: d.Threshold, Total: d.Blocks, Done: d.Compared,
		LastUpdated: wireTime(d.LastUpdated), Found: d.Found, Incomplete: d.Incomplete, Reason: d.Reason, Groups: d.Groups,
		Pairs: make([]pairBody, len(d.Pairs)), Next: d.Next,
	}
	if d.Compared == d.Blocks {
		body.Status = duplicatesDone
	}
	for i, p := range d.Pairs {
		body.Pairs[i] = pairBody{Group: p.Group, Score: p.Score}
		for _, s := range p.Subjects {
			body.Pairs[i].Subjects = append(body.Pairs[i].Subjects, pairSubjectBody{s.Subject.String(), wireNote(s.Note)})
		}
	}
	return answer{fasthttp.StatusOK, body}, nil
}

// deleteDuplicates serves DELETE jobs/duplicates.
func deleteDuplicates(ctx context.Context, c *call) (answer, error) {
	return answer{fasthttp.StatusNoContent, nil}, c.service.EndDuplicates(ctx, c.access)
}
