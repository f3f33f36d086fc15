package httpapi

import (
	"context"

	"github.com/valyala/fasthttp"

	"facet/internal/answers"
	"facet/internal/id"
	"facet/router"
)

// The states of a comparison of a gallery with itself.
const (
	duplicatesRunning = "Running"
	duplicatesDone    = "Done"
)

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

func wireDuplicates(d router.Duplicates) answers.Duplicates {
	body := answers.Duplicates{
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

func wirePairs(pairs []router.DuplicatePair) []answers.Pair {
	list := make([]answers.Pair, len(pairs))
	for i, p := range pairs {
		list[i] = answers.Pair{Group: p.Group, Score: p.Score, Subjects: wireSubjects(p)}
	}
	return list
}

func wireSubjects(p router.DuplicatePair) (list []answers.PairSubject) {
	for _, s := range p.Subjects {
		list = append(list, answers.PairSubject{ID: s.Subject.String(), Note: wireNote(s.Note)})
	}
	return list
}

// deleteDuplicates serves DELETE jobs/duplicates.
var deleteDuplicates = changes(readsNothing, func(ctx context.Context, c *call, w Writer, _ nothing) (nothing, error) {
	return nothing{}, w.EndDuplicates(ctx, c.access)
}, showsStatus[nothing](fasthttp.StatusNoContent), says[nothing, nothing]{})

// getDifferent serves GET jobs/duplicates/different.
var getDifferent = reads(readPairsPage, func(ctx context.Context, c *call, r Reader, p pairsPage) (answers.DifferentPairs, error) {
	list, total, next, err := r.Different(ctx, c.access, p.after, p.length)
	body := answers.DifferentPairs{Total: total, Pairs: make([]answers.DifferentPair, len(list)), Next: next}
	for i, p := range list {
		body.Pairs[i].Subjects = wireSubjects(p)
	}
	return body, err
}, showsItself, says[pairsPage, answers.DifferentPairs]{})

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
