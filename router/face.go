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
	// countedScore is the least face score of a second face that counts, and
	// countedSide the least share of the largest face's side: smaller or vaguer
	// faces behind the person are not "multiple faces".
	countedScore = 0.9
	countedSide  = 0.35
	// soughtSide is the share from which on faces are looked for where one is wanted:
	// a little less than what counts, so that no rounding hides a second person.
	soughtSide = 0.3
	// probeQualityMin is the floor below which a probe's face tells nothing.
	probeQualityMin = 0.05
)

// Extract gives the attributes of at most limit faces of image, largest first.
// An image without a face is NoFace.
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

// VerifyFace compares the faces of two images. Below ThresholdDefault the error
// is NotVerified and carries the score.
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

// VerifySubject compares the probe with each active event of a subject and takes
// the best. Below the application's verify threshold the error is NotVerified.
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
	return atThreshold(best.Score, app.VerifyThreshold)
}

func atThreshold(score, threshold int) (Verification, error) {
	if score < threshold {
		return Verification{Score: score}, &Error{
			Kind: NotVerified, Reason: ReasonNotVerified, Score: score,
			Message: "the subject was not verified: the score is below the threshold",
		}
	}
	return Verification{Score: score}, nil
}

// probe extracts the one face of an image that something is compared with.
func (r *faceRequests) probe(ctx context.Context, image []byte) (engine.Face, error) {
	return r.single(ctx, image, probeQualityMin)
}

// single extracts the one face of image, of at least the given quality.
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

// counts tells whether f is a second person of the picture beside the largest.
func counts(f, largest engine.Face) bool {
	side := func(f engine.Face) float32 { return f.Attributes.Face.Right - f.Attributes.Face.Left }
	return f.Attributes.Score >= countedScore && side(f) >= countedSide*side(largest)
}

// imageError gives the engine's errors the router's kinds.
func imageError(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, engine.ErrImage):
		return Errorf(InvalidRequest, ReasonImage, "%v", err)
	case errors.Is(err, engine.ErrBusy):
		return &Error{Kind: Busy, Message: "too many images are being worked on; try again", RetryAfter: calls.RetryLater}
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
