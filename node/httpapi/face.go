package httpapi

import (
	"cmp"
	"context"
	"slices"

	"github.com/valyala/fasthttp"

	"facet/engine"
	"facet/internal/trace"
	"facet/router"
)

// getHealth serves GET health.
func getHealth(context.Context, *call) (answer, error) {
	return answer{fasthttp.StatusOK, healthBody{Status: "OK"}}, nil
}

// postExtract serves POST face/extract: body faces, and limit and measures in version
// 1.1.
func postExtract(ctx context.Context, c *call) (answer, error) {
	o, err := readObject(c.body.bytes, "faces", "limit", "measures")
	if err != nil {
		return answer{}, err
	}
	limit, measures := router.ExtractLimitDefault, false
	if c.version != v1 {
		const anyLimit = 1<<31 - 1 // a limit above MaxFaces changes nothing
		if limit, err = o.integer("limit", bounds{1, anyLimit}, limit); err != nil {
			return answer{}, err
		}
		if measures, err = o.boolean("measures"); err != nil {
			return answer{}, err
		}
	}
	image, err := o.image("faces")
	if err != nil {
		return answer{}, err
	}
	c.notePhotos(router.Probe{image})
	found, err := c.service.Extract(ctx, image, min(limit, engine.MaxFaces))
	if err == nil && len(found) == 0 {
		err = router.Errorf(router.NoFace, "", "There is no face in the image.")
	}
	if router.KindOf(err) == router.NoFace && c.version == v1 {
		return answer{}, notFound("NoFace", "Candidates not found.")
	}
	if err != nil {
		return answer{}, err
	}
	c.trail.quality = found[0].Attributes.Quality
	faces := make([]faceBody, len(found))
	for i := range found {
		faces[i] = faceBody{Attributes: wireAttributes(found[i].Attributes)}
		if measures {
			faces[i].Measures = wireMeasures(&found[i].Measures)
			faces[i].Defects = append([]engine.Defect{}, found[i].Defects...)
		}
	}
	return answer{fasthttp.StatusOK, facesBody{faces}}, nil
}

// postVerify serves POST v1.1/face/verify: body probe or probes, and face or id. Only a
// request with id needs an API key.
func postVerify(ctx context.Context, c *call) (answer, error) {
	o, err := readVerify(ctx, c)
	if err := c.count(); err != nil {
		return answer{}, err
	}
	if err != nil {
		return answer{}, err
	}
	if _, ok := o["id"]; ok {
		return verifySubject(ctx, c, o)
	}
	face, err := o.image("face")
	if err != nil {
		return answer{}, err
	}
	probe, err := c.probe(o)
	if err != nil {
		return answer{}, err
	}
	verified, err := c.service.VerifyFace(ctx, face, probe)
	return answer{fasthttp.StatusOK, verifiedBody{Score: verified.Score, Probes: c.probed(verified.Probes)}}, err
}

// readVerify reads the body of a verification. It checks the API key when the body
// has an id.
func readVerify(ctx context.Context, c *call) (object, error) {
	o, err := readObject(c.body.bytes, "probe", "probes", "face", "id", "reference")
	if err != nil {
		return nil, err
	}
	_, hasFace := o["face"]
	_, hasID := o["id"]
	if hasFace == hasID {
		return nil, invalid("", "Exactly one of face and id is required.")
	}
	if hasID {
		return o, c.authorize(ctx)
	}
	return o, nil
}

// postVerifyV1 serves POST v1/face/verify: body probe and id.
func postVerifyV1(ctx context.Context, c *call) (answer, error) {
	o, err := readObject(c.body.bytes, "probe", "id")
	if err != nil {
		return answer{}, err
	}
	if _, ok := o["id"]; !ok {
		return answer{}, missing("id")
	}
	return verifySubject(ctx, c, o)
}

// verifySubject compares the probe of o with the subject whose id o has.
func verifySubject(ctx context.Context, c *call, o object) (answer, error) {
	text, err := c.idText(o)
	if err != nil {
		return answer{}, err
	}
	if text == "" {
		return answer{}, invalid("", "id must not be empty.")
	}
	probe, err := c.probe(o)
	if err != nil {
		return answer{}, err
	}
	subject, err := c.subject(ctx, text)
	if err != nil {
		return answer{}, err
	}
	q := router.SubjectVerification{Access: c.access, Subject: subject, Probe: probe}
	if q.Doubt, err = c.doubt(o); err != nil {
		return answer{}, err
	}
	verified, err := c.service.VerifySubject(ctx, q)
	if err != nil {
		if f, _ := failureOf(err, c.version, c.requestID); router.KindOf(err) == router.NotVerified {
			f.body.ID = subject.String()
			if f.body.Score != nil {
				c.found(subject, *f.body.Score, verified.Note)
			}
			if c.trail.review = verified.Case; !verified.Case.IsZero() {
				f.body.CaseID = verified.Case.String()
			}
			return answer{}, f
		}
		return answer{}, err
	}
	c.found(subject, verified.Score, verified.Note)
	return answer{fasthttp.StatusOK, verifiedBody{
		subject.String(), verified.Score, c.probed(verified.Probes), c.note(verified.Note), c.ignored(verified.Ignored),
	}}, nil
}

// postSearch serves POST face/search: body probe, threshold, limit, and in version 1.1
// tags, receipt, and probes instead of probe.
func postSearch(ctx context.Context, c *call) (answer, error) {
	_, parsing := trace.Start(ctx, trace.Stage{Name: trace.Parse})
	q, err := readSearch(c)
	parsing.End(err)
	if err != nil {
		return answer{}, err
	}
	result, err := c.service.Search(ctx, q)
	if err != nil {
		return answer{}, err
	}
	for _, found := range slices.Concat(result.Candidates, result.Doubtful) {
		c.found(found.Subject, found.Score, found.Note)
	}
	c.trail.went(result.Searched, result.Attributes)
	text := searchBody{
		Candidates: make([]candidate, len(result.Candidates)), Attributes: wireAttributes(result.Attributes), Ignored: c.ignored(result.Ignored),
		Probes: c.probed(result.Probes),
	}
	if q.Receipt {
		text.Receipt = wireReceipt(result.Receipt)
	}
	for i, found := range result.Candidates {
		text.Candidates[i] = wireCandidate(found, c.version)
	}
	for _, found := range result.Doubtful {
		text.Doubtful = append(text.Doubtful, wireCandidate(found, c.version))
	}
	if len(text.Candidates) == 0 {
		text.Message = "Candidates not found."
		return answer{fasthttp.StatusNotFound, text}, nil
	}
	return answer{fasthttp.StatusOK, text}, nil
}

// readSearch reads the body of a search, within the bounds of the application.
func readSearch(c *call) (router.SearchQuery, error) {
	o, err := readObject(c.body.bytes, "probe", "probes", "threshold", "limit", "tags", "receipt")
	if err != nil {
		return router.SearchQuery{}, err
	}
	q := router.SearchQuery{Access: c.access, Count: router.CountEvents, Audited: c.recorded()}
	var errs [5]error
	least, most := c.access.SearchThresholdMin, c.access.SearchLimitMax
	q.Threshold, errs[0] = o.integer("threshold", bounds{least, router.ThresholdMax}, cmp.Or(least, router.ThresholdDefault))
	q.Limit, errs[1] = o.integer("limit", bounds{1, cmp.Or(most, router.SearchLimitMax)}, cmp.Or(most, router.SearchLimitDefault))
	if c.version == v1 {
		q.Count = router.CountSubjects
	} else {
		q.Tags, errs[2] = o.tags()
		q.Receipt, errs[3] = o.boolean("receipt")
	}
	q.Probe, errs[4] = c.probe(o)
	c.trail.asks(q.Threshold, q.Limit)
	return q, firstOf(errs[:]...)
}

// postMatches serves POST face/matches: body probe, threshold, length and after.
func postMatches(ctx context.Context, c *call) (answer, error) {
	o, err := readObject(c.body.bytes, "probe", "threshold", "length", "after")
	if err != nil {
		return answer{}, err
	}
	q := router.MatchQuery{Access: c.access, Audited: c.recorded()}
	var errs [4]error
	var follows bool
	q.Threshold, errs[0] = o.integer("threshold", bounds{0, router.ThresholdMax}, router.ThresholdDefault)
	q.Length, errs[1] = o.integer("length", bounds{1, router.MatchLengthMax}, router.MatchLengthDefault)
	q.After, follows, errs[2] = o.text("after", pathIDMax)
	q.Probe, errs[3] = o.image("probe")
	if err := firstOf(errs[:]...); err != nil {
		return answer{}, err
	}
	if follows && q.After == "" {
		return answer{}, invalid("", "after must not be empty; leave it out for the first page.")
	}
	c.trail.asks(q.Threshold, q.Length)
	c.notePhotos(router.Probe{q.Probe})
	page, err := c.service.Matches(ctx, q)
	if err != nil {
		return answer{}, err
	}
	c.trail.went(page.Searched, page.Attributes)
	text := matchesBody{Candidates: make([]matchBody, len(page.Matches)), Next: page.Next, Ignored: wireIgnored(page.Ignored)}
	for i, m := range page.Matches {
		c.found(m.Subject, m.Score, m.Note)
		text.Candidates[i] = matchBody{wireCandidate(m.Candidate, c.version), m.EventCount}
	}
	return answer{fasthttp.StatusOK, text}, nil
}

// firstOf returns the first error that is not nil. A body with several faults gets
// the same answer every time.
func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
