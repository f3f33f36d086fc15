package router

import (
	"context"
	"errors"
	"fmt"

	"facet/engine"
	"facet/engine/score"
	"facet/internal/id"
	"facet/router/calls"
)

const (
	// A second face counts as another person from a face score of countedScore and
	// from countedSide of the largest face's side on. Smaller or vaguer faces in
	// the background do not make an image one of several faces.
	countedScore = 0.9
	countedSide  = 0.35
	// soughtSide is the least share of the largest face's side for which the engine
	// searches when one face is wanted. It is a little less than countedSide, so
	// that rounding does not hide a second person.
	soughtSide = 0.3
	// probeQualityMin is the least quality of a probe.
	probeQualityMin = 0.05
)

// Extract returns the attributes of at most limit faces of image, largest first.
// The error is NoFace for an image without a face.
func (r *faceRequests) Extract(ctx context.Context, image []byte, limit int) ([]engine.Attributes, error) {
	faces, err := r.extractor.Extract(ctx, image)
	if err != nil {
		return nil, imageError(ctx, err)
	}
	if len(faces) == 0 {
		return nil, noFace()
	}
	list := make([]engine.Attributes, 0, min(limit, len(faces)))
	for _, f := range faces[:min(limit, len(faces))] {
		list = append(list, f.Attributes)
	}
	return list, nil
}

// VerifyFace compares the faces of two images. Below ThresholdDefault the error is
// NotVerified and contains the score.
func (r *faceRequests) VerifyFace(ctx context.Context, face, probe []byte) (Verification, error) {
	a, err := r.probe(ctx, face)
	if err != nil {
		return Verification{}, err
	}
	b, err := r.probe(ctx, probe)
	if err != nil {
		return Verification{}, err
	}
	return atThreshold(r.table.Score(score.Dot(a.Template, b.Template)), ThresholdDefault)
}

// VerifySubject compares the probe with each active event of a subject and returns
// the best score. Below the application's verify threshold the error is
// NotVerified.
func (r *faceRequests) VerifySubject(ctx context.Context, access Access, subject id.Subject, image []byte) (Verification, error) {
	g, app, err := r.enrolmentAt(ctx, access, subject.Shard(), subjectNotFound)
	if err != nil {
		return Verification{}, err
	}
	probe, err := r.probe(ctx, image)
	if err != nil {
		return Verification{}, err
	}
	best, err := calls.CallLeader(ctx, r.calls, shardBest, subject.Shard(), bestQuery{
		Gallery: g.ID, Generation: g.Generation, Subject: subject, Probe: probe.Template, Model: probe.Model,
	})
	if err != nil {
		return Verification{}, err
	}
	if !best.Known {
		return Verification{}, subjectNotFound()
	}
	v, err := atThreshold(best.Score, app.VerifyThreshold)
	if err != nil || len(best.Noted.Note) == 0 {
		return v, err
	}
	key, err := r.dataKey(g.Gallery)
	if err == nil {
		v.Note, err = openNote(g, key, subject, best.Noted)
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
func (r *faceRequests) probe(ctx context.Context, image []byte) (engine.Face, error) {
	return r.single(ctx, image, probeQualityMin)
}

// single extracts the one face of image. It must have at least the quality
// qualityMin.
func (r *faceRequests) single(ctx context.Context, image []byte, qualityMin float64) (engine.Face, error) {
	faces, err := r.extractor.ExtractLarge(ctx, image, soughtSide)
	if err == nil && len(faces) == 0 { // perhaps a small face on a large picture
		faces, err = r.extractor.Extract(ctx, image)
	}
	if err != nil {
		return engine.Face{}, imageError(ctx, err)
	}
	if len(faces) == 0 {
		return engine.Face{}, noFace()
	}
	for _, f := range faces[1:] {
		if counts(f, faces[0]) {
			return engine.Face{}, Errorf(MultipleFaces, "", "the image shows several faces where one is permitted")
		}
	}
	if q := float64(faces[0].Attributes.Quality); q < qualityMin {
		return engine.Face{}, Errorf(PoorQuality, "", "the face's quality %.2f is below the minimum %.2f", q, qualityMin)
	}
	return faces[0], nil
}

// counts reports whether f counts as a second person beside the largest face.
func counts(f, largest engine.Face) bool {
	side := func(f engine.Face) float32 { return f.Attributes.Face.Right - f.Attributes.Face.Left }
	return f.Attributes.Score >= countedScore && side(f) >= countedSide*side(largest)
}

// imageError maps an error of the engine to a kind of the router.
func imageError(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, engine.ErrImage):
		return Errorf(InvalidRequest, ReasonImage, "the image can't be read: %s", engine.Complaint(err))
	case errors.Is(err, engine.ErrBusy):
		return &Error{Kind: Busy, Message: "too many images are in progress; try again", RetryAfter: calls.RetryLater}
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		return fmt.Errorf("extract: %w", err)
	}
}

func noFace() error { return Errorf(NoFace, "", "no face was found in the image") }

func subjectNotFound() error {
	return Errorf(NotFound, ReasonSubjectNotFound, "there is no subject with this id")
}
