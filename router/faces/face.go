package faces

import (
	"context"
	"errors"
	"fmt"

	"facet/engine"
	"facet/engine/portrait"
	"facet/raftfsm/metafsm"
	"facet/router"
	"facet/router/calls"
)

// Extract returns at most limit faces of image, largest first. The error is NoFace for
// an image without a face.
func (r *FaceRequests) Extract(ctx context.Context, image []byte, limit int) ([]router.Seen, error) {
	faces, err := r.extractor.Extract(ctx, image)
	if err != nil {
		return nil, imageError(ctx, err)
	}
	if len(faces) == 0 {
		return nil, noFace()
	}
	list := make([]router.Seen, 0, min(limit, len(faces)))
	for _, f := range faces[:min(limit, len(faces))] {
		list = append(list, router.Seen{Attributes: f.Attributes, Measures: f.Measures, Defects: f.Defects})
	}
	return list, nil
}

// Probe extracts the one face of a probe.
func (r *FaceRequests) Probe(ctx context.Context, image []byte, rule portrait.Rule) (portrait.Taken, error) {
	return r.single(ctx, image, rule, portrait.ProbeQualityMin)
}

// Enrolled extracts the one face of an image that an application enrols. It must have
// no defect.
func (r *FaceRequests) Enrolled(ctx context.Context, image []byte, app metafsm.Application) (portrait.Taken, error) {
	face, err := r.single(ctx, image, portrait.Rule(app.MultipleFaces), app.MinimumQuality)
	if err == nil && len(face.Defects) > 0 {
		return portrait.Taken{}, router.Errorf(router.PoorQuality, reasonOf(&face.Face), "%s", face.Advice())
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
func (r *FaceRequests) single(ctx context.Context, image []byte, rule portrait.Rule, qualityMin float64) (portrait.Taken, error) {
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
		return portrait.Taken{}, router.Errorf(router.MultipleFaces, "", "the image shows several faces, and none is clearly the one meant")
	case errors.Is(err, portrait.ErrSeveral):
		return portrait.Taken{}, router.Errorf(router.MultipleFaces, "", "the image shows several faces where one is permitted")
	case err != nil:
		return portrait.Taken{}, imageError(ctx, err)
	}
	if q := float64(face.Attributes.Quality); q < qualityMin {
		advice := face.Advice()
		if advice != "" {
			advice = "; " + advice
		}
		return portrait.Taken{}, router.Errorf(router.PoorQuality, reasonOf(&face.Face), "the face's quality %.2f is below the minimum %.2f%s", q, qualityMin, advice)
	}
	return face, nil
}

// imageError maps an error of the engine to a kind of the router.
func imageError(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, engine.ErrImage):
		return router.Errorf(router.InvalidRequest, router.ReasonImage, "the image can't be read: %s", engine.Complaint(err))
	case errors.Is(err, engine.ErrBusy):
		return busyNode()
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		return fmt.Errorf("extract: %w", err)
	}
}

func busyNode() error {
	return &router.Error{Kind: router.Busy, Message: "too many images are in progress; try again", RetryAfter: calls.RetryLater}
}

func noFace() error { return router.Errorf(router.NoFace, "", "no face was found in the image") }
