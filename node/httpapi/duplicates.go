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
var postDuplicates = changes(func(_ context.Context, c *call) (q duplicatesRequest, err error) {
	o, err := readObject(c.body.bytes, "threshold")
	if err != nil {
		return q, err
	}
	q.threshold, err = o.integer("threshold", bounds{router.DuplicatesThresholdMin, router.ThresholdMax}, router.DuplicatesThresholdDefault)
	if err != nil {
		return q, err
	}
	q.write, err = c.write()
	return q, err
}, func(ctx context.Context, c *call, w Writer, q duplicatesRequest) (id.Batch, error) {
	return w.BeginDuplicates(ctx, c.access, q.write, q.threshold)
}, shows[duplicatesRequest](wireBatch), says[duplicatesRequest, id.Batch]{})

// duplicatesRequest begins to compare a gallery with itself.
type duplicatesRequest struct {
	write     router.Write
	threshold int
}

// getDuplicates serves GET jobs/duplicates.
var getDuplicates = reads(readPairsPage, func(ctx context.Context, c *call, r Reader, p pairsPage) (router.Duplicates, error) {
	return r.Duplicates(ctx, c.access, p.after, p.length)
}, shows[pairsPage](wireDuplicates), says[pairsPage, router.Duplicates]{})

func wireDuplicates(d router.Duplicates) duplicatesBody {
	body := duplicatesBody{
		BatchID: d.Batch.String(), Status: duplicatesRunning, Threshold: d.Threshold, Total: d.Blocks, Done: d.Compared,
		LastUpdated: wireTime(d.LastUpdated), Found: d.Found, Incomplete: d.Incomplete, Reason: d.Reason,
		Different: d.Different, Groups: d.Groups, Pairs: wirePairs(d.Pairs), Next: d.Next,
	}
	if d.Compared == d.Blocks {
		body.Status = duplicatesDone
	}
	return body
}

// pairsPage says which page of pairs is wanted.
type pairsPage struct {
	after  string
	length int
}

// readPairsPage reads the query after and length.
func readPairsPage(_ context.Context, c *call) (p pairsPage, err error) {
	all, err := parameters(c.query)
	if err != nil {
		return p, err
	}
	if p.length, err = wholeParameter(all, "length", bounds{1, router.DuplicatesPageMax}, router.DuplicatesPageMax); err != nil {
		return p, err
	}
	p.after, _, err = after(all)
	return p, err
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
var deleteDuplicates = changes(readsNothing, func(ctx context.Context, c *call, w Writer, _ nothing) (nothing, error) {
	return nothing{}, w.EndDuplicates(ctx, c.access)
}, showsStatus[nothing](fasthttp.StatusNoContent), says[nothing, nothing]{})

// differentBody is a page of the pairs of subjects that are different people.
type differentBody struct {
	Total int        `json:"total"`
	Pairs []pairBody `json:"pairs"`
	Next  string     `json:"next,omitzero"`
}

// getDifferent serves GET jobs/duplicates/different.
var getDifferent = reads(readPairsPage, func(ctx context.Context, c *call, r Reader, p pairsPage) (differentBody, error) {
	list, total, next, err := r.Different(ctx, c.access, p.after, p.length)
	return differentBody{total, wirePairs(list), next}, err
}, showsItself, says[pairsPage, differentBody]{})

// putDifferent serves PUT jobs/duplicates/different/{subjectId}/{otherId}.
var putDifferent = changes(twoSubjects, func(ctx context.Context, c *call, w Writer, two [2]id.Subject) (nothing, error) {
	return nothing{}, w.SetDifferent(ctx, c.access, two[0], two[1])
}, showsStatus[[2]id.Subject](fasthttp.StatusNoContent), saysTwo)

// deleteDifferent serves DELETE jobs/duplicates/different/{subjectId}/{otherId}.
var deleteDifferent = changes(twoSubjects, func(ctx context.Context, c *call, w Writer, two [2]id.Subject) (nothing, error) {
	return nothing{}, w.UnsetDifferent(ctx, c.access, two[0], two[1])
}, showsStatus[[2]id.Subject](fasthttp.StatusNoContent), saysTwo)

var saysTwo = says[[2]id.Subject, nothing]{asked: func(t *trail, two [2]id.Subject) { t.names(two[:]...) }}

// twoSubjects returns the subjects that a path names.
func twoSubjects(ctx context.Context, c *call) (two [2]id.Subject, err error) {
	for i := range two {
		if two[i], err = c.subject(ctx, c.parameters[i]); err != nil {
			break
		}
	}
	return two, err
}
