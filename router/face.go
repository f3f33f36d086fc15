package router

import (
	"context"
	"errors"
	"fmt"

	"facet/engine"
	"facet/engine/portrait"
	"facet/engine/score"
	"facet/raftfsm/metafsm"
	"facet/router/calls"
	"facet/shard/job"
)

// Extract returns at most limit faces of image, largest first. The error is NoFace for
// an image without a face.
func (r *faceRequests) Extract(ctx context.Context, image []byte, limit int) ([]Seen, error) {
	faces, err := r.extractor.Extract(ctx, image)
	if err != nil {
		return nil, imageError(ctx, err)
	}
	if len(faces) == 0 {
		return nil, noFace()
	}
	list := make([]Seen, 0, min(limit, len(faces)))
	for _, f := range faces[:min(limit, len(faces))] {
		list = append(list, Seen{f.Attributes, f.Measures, f.Defects})
	}
	return list, nil
}

// VerifyFace compares the faces of two images. It knows no application, so it refuses an image of
// several faces. Below ThresholdDefault the error is
// NotVerified and contains the score.
func (r *verificationRequests) VerifyFace(ctx context.Context, face []byte, probe Probe) (Verification, error) {
	a, err := r.faces.probe(ctx, face, portrait.Refuse)
	if err != nil {
		return Verification{}, err
	}
	b, err := r.faces.probes(ctx, probe, portrait.Refuse)
	if err != nil {
		return Verification{}, err
	}
	v, err := atThreshold(r.faces.table.Score(score.Dot(a.Template, b.Template)), ThresholdDefault)
	v.Probes = b.all
	return v, err
}

// VerifySubject compares the probe with each active event of a subject, and with the
// subject's own template if its gallery wants these, and returns the best score. Below
// the application's verify threshold the error is NotVerified, and the Verification has the note. In the
// review band a case may be opened.
func (r *verificationRequests) VerifySubject(ctx context.Context, q SubjectVerification) (Verification, error) {
	subject := q.Subject
	g, app, err := r.cluster.enrolmentAt(ctx, q.Access, subject.Shard(), subjectNotFound)
	if err != nil {
		return Verification{}, err
	}
	probe, err := r.faces.probes(ctx, q.Probe, portrait.Rule(app.MultipleFaces))
	if err != nil {
		return Verification{}, err
	}
	best, err := calls.CallAny(ctx, r.cluster.calls, shardBest, subject.Shard(), bestQuery{
		Gallery: g.ID, Generation: g.Generation, Subject: subject, Probe: probe.Template, Model: probe.Model,
		Means: g.SubjectTemplates,
	})
	if err != nil {
		return Verification{}, err
	}
	if !best.Known {
		return Verification{}, subjectNotFound()
	}
	v, err := atThreshold(best.Score, app.VerifyThreshold)
	if q.Doubt != nil && inReview(&app, best.Score, app.VerifyThreshold) {
		key, failed := r.cluster.dataKey(g.Gallery)
		if failed != nil {
			return v, failed
		}
		c := job.Case{Subject: subject, Score: best.Score, Probe: probeName(key, g.Gallery, probe.Template)}
		v.Case, err = r.reviews.doubt(ctx, g, app, c, q.Doubt)
	}
	v.Ignored, v.Probes = probe.Ignored, probe.all
	if len(best.Noted.Note) == 0 {
		return v, err
	}
	key, failed := r.cluster.dataKey(g.Gallery)
	if failed == nil {
		v.Note, failed = g.openNote(key, subject, best.Noted)
	}
	if failed != nil {
		return v, failed
	}
	return v, err
}

// atThreshold returns a verification with score. Below threshold the error is
// NotVerified.
func atThreshold(score, threshold int) (Verification, error) {
	if score < threshold {
		return Verification{Score: score}, &Error{
			Kind: NotVerified, Reason: ReasonNotVerified, Score: score,
			Message: "the subject was not verified: the score is below the threshold",
		}
	}
	return Verification{Score: score}, nil
}

// probe extracts the one face of a probe.
func (r *faceRequests) probe(ctx context.Context, image []byte, rule portrait.Rule) (portrait.Taken, error) {
	return r.single(ctx, image, rule, portrait.ProbeQualityMin)
}

// enrolled extracts the one face of an image that an application enrols. It must have
// no defect.
func (r *faceRequests) enrolled(ctx context.Context, image []byte, app metafsm.Application) (portrait.Taken, error) {
	face, err := r.single(ctx, image, portrait.Rule(app.MultipleFaces), app.MinimumQuality)
	if err == nil && len(face.Defects) > 0 {
		return portrait.Taken{}, Errorf(PoorQuality, reasonOf(&face.Face), "%s", face.Advice())
	}
	return face, err
}

// reasonOf returns the first defect of a face, or "".
func reasonOf(f *engine.Face) string {
	if len(f.Defects) == 0 {
		return ""
	}
	return string(f.Defects[0])
}

// single extracts the one face of image; rule says which one if there are several. It
// must have at least the quality qualityMin.
func (r *faceRequests) single(ctx context.Context, image []byte, rule portrait.Rule, qualityMin float64) (portrait.Taken, error) {
	faces, err := r.extractor.ExtractLarge(ctx, image, portrait.SoughtSide)
	if err == nil && len(faces) == 0 { // perhaps a small face on a large picture
		faces, err = r.extractor.Extract(ctx, image)
	}
	if err != nil {
		return portrait.Taken{}, imageError(ctx, err)
	}
	if len(faces) == 0 {
		return portrait.Taken{}, noFace()
	}
	face, err := rule.Take(image, faces)
	switch {
	case errors.Is(err, portrait.ErrSeveral) && rule == portrait.Dominant:
		return portrait.Taken{}, Errorf(MultipleFaces, "", "the image shows several faces, and none is clearly the one meant")
	case errors.Is(err, portrait.ErrSeveral):
		return portrait.Taken{}, Errorf(MultipleFaces, "", "the image shows several faces where one is permitted")
	case err != nil:
		return portrait.Taken{}, imageError(ctx, err)
	}
	if q := float64(face.Attributes.Quality); q < qualityMin {
		advice := face.Advice()
		if advice != "" {
			advice = "; " + advice
		}
		return portrait.Taken{}, Errorf(PoorQuality, reasonOf(&face.Face), "the face's quality %.2f is below the minimum %.2f%s", q, qualityMin, advice)
	}
	return face, nil
}

// imageError maps an error of the engine to a kind of the router.
func imageError(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, engine.ErrImage):
		return Errorf(InvalidRequest, ReasonImage, "the image can't be read: %s", engine.Complaint(err))
	case errors.Is(err, engine.ErrBusy):
		return busyNode()
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		return fmt.Errorf("extract: %w", err)
	}
}

func busyNode() error {
	return &Error{Kind: Busy, Message: "too many images are in progress; try again", RetryAfter: calls.RetryLater}
}

func noFace() error { return Errorf(NoFace, "", "no face was found in the image") }

func subjectNotFound() error {
	return Errorf(NotFound, ReasonSubjectNotFound, "there is no subject with this id")
}
