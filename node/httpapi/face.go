package httpapi

import (
	"cmp"
	"context"
	"slices"

	"github.com/valyala/fasthttp"

	"facet/engine"
	"facet/internal/answers"
	"facet/router"
)

// getHealth serves GET health, whose answers are counted.
func getHealth(context.Context, *call) (answer, error) {
	return answer{fasthttp.StatusOK, answers.Health{Status: "OK"}}, nil
}

// facesQuery asks for the faces of a photo.
type facesQuery struct {
	image    []byte
	limit    int
	measures bool
}

// postExtract serves POST face/extract: body faces, and limit and measures in version
// 1.1.
var postExtract = reads(readExtraction, extract, showFaces, says[facesQuery, []router.Seen]{
	asked: func(t *trail, q facesQuery) { t.photo(q.image) },
	told: func(t *trail, _ facesQuery, found []router.Seen) {
		if len(found) > 0 {
			t.quality = found[0].Attributes.Quality
		}
	},
})

func readExtraction(_ context.Context, c *call) (facesQuery, error) {
	q := facesQuery{limit: router.ExtractLimitDefault}
	o, err := readObject(c.body.bytes, "faces", "limit", "measures")
	if err != nil {
		return q, err
	}
	if c.version != v1 {
		const anyLimit = 1<<31 - 1 // a limit above MaxFaces changes nothing
		if q.limit, err = o.integer("limit", bounds{1, anyLimit}, q.limit); err != nil {
			return q, err
		}
		if q.measures, err = o.boolean("measures"); err != nil {
			return q, err
		}
	}
	q.image, err = o.image("faces")
	return q, err
}

func extract(ctx context.Context, c *call, r Reader, q facesQuery) ([]router.Seen, error) {
	found, err := r.Extract(ctx, q.image, min(q.limit, engine.MaxFaces))
	if err == nil && len(found) == 0 {
		err = router.Errorf(router.NoFace, "", "There is no face in the image.")
	}
	if router.KindOf(err) == router.NoFace && c.version == v1 {
		err = notFound("NoFace", "Candidates not found.")
	}
	return found, err
}

func showFaces(_ *call, q facesQuery, found []router.Seen) answer {
	faces := make([]answers.SeenFace, len(found))
	for i := range found {
		faces[i] = answers.SeenFace{Attributes: wireAttributes(found[i].Attributes)}
		if q.measures {
			faces[i].Measures = wireMeasures(&found[i].Measures)
			faces[i].Defects = []string{}
			for _, d := range found[i].Defects {
				faces[i].Defects = append(faces[i].Defects, string(d))
			}
		}
	}
	return answer{fasthttp.StatusOK, answers.Faces{Faces: faces}}
}

// verification asks whether a probe shows the person of a photo or of a subject.
type verification struct {
	router.SubjectVerification
	face []byte // nil if a subject is asked about
}

// verdict is the outcome of a verification.
type verdict struct {
	router.Verification
	scored bool // also below the threshold
}

// postVerify serves POST v1.1/face/verify: body probe or probes, and face or id. Only a
// request with id needs an API key.
var postVerify = reads(func(ctx context.Context, c *call) (verification, error) {
	o, err := readVerify(ctx, c)
	if err := c.count(); err != nil {
		return verification{}, err
	}
	if err != nil {
		return verification{}, err
	}
	if _, ok := o["id"]; ok {
		return readVerification(ctx, c, o)
	}
	var q verification
	if q.face, err = o.image("face"); err == nil {
		q.Probe, err = c.probe(o)
	}
	return q, err
}, verify, showVerified, saysVerification)

// postVerifyV1 serves POST v1/face/verify: body probe and id.
var postVerifyV1 = reads(func(ctx context.Context, c *call) (verification, error) {
	o, err := readObject(c.body.bytes, "probe", "id")
	if err != nil {
		return verification{}, err
	}
	if _, ok := o["id"]; !ok {
		return verification{}, missing("id")
	}
	return readVerification(ctx, c, o)
}, verify, showVerified, saysVerification)

// saysVerification has a record name the subject with its score, and the case that was opened.
var saysVerification = says[verification, verdict]{
	asked: func(t *trail, q verification) {
		t.photos = q.Probe
		t.names(q.Subject)
	},
	told: func(t *trail, q verification, v verdict) {
		if v.scored && !q.Subject.IsZero() {
			t.finds(q.Subject, v.Score, v.Note)
			t.review = v.Case
		}
	},
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

// readVerification reads which subject the probe of o is compared with.
func readVerification(ctx context.Context, c *call, o object) (q verification, err error) {
	text, err := c.idText(o)
	if err != nil {
		return q, err
	}
	if text == "" {
		return q, invalid("", "id must not be empty.")
	}
	q.Access = c.access
	if q.Probe, err = c.probe(o); err != nil {
		return q, err
	}
	if q.Subject, err = c.subject(ctx, text); err != nil {
		return q, err
	}
	q.Doubt, err = c.doubt(o)
	return q, err
}

func verify(ctx context.Context, c *call, r Reader, q verification) (v verdict, err error) {
	if q.face != nil {
		v.Verification, err = r.VerifyFace(ctx, q.face, q.Probe)
		return v, err
	}
	v.Verification, err = r.VerifySubject(ctx, q.SubjectVerification)
	if v.scored = err == nil || router.KindOf(err) == router.NotVerified; err == nil || !v.scored {
		return v, err
	}
	f, _ := failureOf(err, c.version, c.requestID)
	f.body.ID = q.Subject.String()
	if !v.Case.IsZero() {
		f.body.CaseID = v.Case.String()
	}
	return v, f
}

func showVerified(c *call, q verification, v verdict) answer {
	text := answers.Verified{Score: v.Score, Probes: c.probed(v.Probes), Note: c.note(v.Note), IgnoredFaces: c.ignored(v.Ignored)}
	if !q.Subject.IsZero() {
		text.ID = q.Subject.String()
	}
	return answer{fasthttp.StatusOK, text}
}

// postSearch serves POST face/search: body probe, threshold, limit, and in version 1.1
// tags, receipt, and probes instead of probe.
var postSearch = reads(parsed(readSearch), by(Reader.Search), showFound, says[router.SearchQuery, router.SearchResult]{
	asked: func(t *trail, q router.SearchQuery) {
		t.asks(q.Threshold, q.Limit)
		t.photos = q.Probe
	},
	told: func(t *trail, _ router.SearchQuery, result router.SearchResult) {
		for _, found := range slices.Concat(result.Candidates, result.Doubtful) {
			t.finds(found.Subject, found.Score, found.Note)
		}
		t.went(result.Searched, result.Attributes)
	},
})

func showFound(c *call, q router.SearchQuery, result router.SearchResult) answer {
	text := answers.SearchResult{
		Candidates: make([]answers.Candidate, len(result.Candidates)), Attributes: wireAttributes(result.Attributes), IgnoredFaces: c.ignored(result.Ignored),
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
		return answer{fasthttp.StatusNotFound, noCandidates{"Candidates not found.", text}}
	}
	return answer{fasthttp.StatusOK, text}
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
	return q, firstOf(errs[:]...)
}

// postMatches serves POST face/matches: body probe, threshold, length and after.
var postMatches = reads(readMatches, by(Reader.Matches), showMatches, says[router.MatchQuery, router.Matched]{
	asked: func(t *trail, q router.MatchQuery) {
		t.asks(q.Threshold, q.Length)
		t.photo(q.Probe)
	},
	told: func(t *trail, _ router.MatchQuery, page router.Matched) {
		t.went(page.Searched, page.Attributes)
		for _, m := range page.Matches {
			t.finds(m.Subject, m.Score, m.Note)
		}
	},
})

func readMatches(_ context.Context, c *call) (router.MatchQuery, error) {
	q := router.MatchQuery{Access: c.access, Audited: c.recorded()}
	o, err := readObject(c.body.bytes, "probe", "threshold", "length", "after")
	if err != nil {
		return q, err
	}
	var errs [4]error
	var follows bool
	q.Threshold, errs[0] = o.integer("threshold", bounds{0, router.ThresholdMax}, router.ThresholdDefault)
	q.Length, errs[1] = o.integer("length", bounds{1, router.MatchLengthMax}, router.MatchLengthDefault)
	q.After, follows, errs[2] = o.text("after", pathIDMax)
	q.Probe, errs[3] = o.image("probe")
	err = firstOf(errs[:]...)
	if err == nil && follows && q.After == "" {
		err = invalid("", "after must not be empty; leave it out for the first page.")
	}
	return q, err
}

func showMatches(c *call, _ router.MatchQuery, page router.Matched) answer {
	text := answers.MatchPage{Matches: make([]answers.Match, len(page.Matches)), Next: page.Next, IgnoredFaces: wireIgnored(page.Ignored)}
	for i, m := range page.Matches {
		found := wireCandidate(m.Candidate, c.version)
		text.Matches[i] = answers.Match{
			ID: found.ID, Score: found.Score, SubjectScore: found.SubjectScore, Events: found.Events, EventCount: m.EventCount, Note: found.Note,
		}
	}
	return answer{fasthttp.StatusOK, text}
}
