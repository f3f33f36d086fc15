package faces

import (
	"context"
	"errors"
	"time"

	"facet/engine"
	"facet/engine/portrait"
	"facet/engine/score"
	"facet/internal/id"
	"facet/router"
)

const (
	// compareExtract is how long a comparison may extract photos. The rest of the request's 30
	// seconds is for the scores and the answer.
	compareExtract = 20 * time.Second
	// comparePiece is how many pairs are compared in one turn, about 4 ms.
	comparePiece = 1 << 15
)

// Compare extracts the one face of each photo, one after the other, and compares all faces. A photo
// without such a face does not end it. When the node has no more time, the photos that it
// extracted are in the answer. The error is Busy if that is none.
func (r *FaceRequests) Compare(ctx context.Context, tenant id.Tenant, faces []router.CompareFace) (router.Comparison, error) {
	tokens := r.faceTokens(tenant)
	templates := make([]engine.Template, len(faces))
	if err := openFaces(tokens, faces, templates); err != nil {
		return router.Comparison{}, err
	}
	done, err := r.compared(ctx, tokens, faces, templates)
	if err != nil {
		return router.Comparison{}, err
	}
	c := router.Comparison{Faces: done}
	for i := range done {
		if done[i].Token != "" {
			c.Expires = tokens.expires()
		}
	}
	if c.Scores, err = r.scores(ctx, templates); err != nil {
		if c.Expires.IsZero() || !outOfTime(ctx, err) {
			return router.Comparison{}, err
		}
		c.Scores = nil
	}
	return c, nil
}

// openFaces opens the tokens among faces.
func openFaces(tokens *faceTokens, faces []router.CompareFace, templates []engine.Template) error {
	dim := 0
	for i, f := range faces {
		if f.Image != nil {
			continue
		}
		t, err := tokens.open(f.Token)
		if err == nil && dim != 0 && dim != len(t) {
			err = errFaceToken
		}
		if err != nil {
			return router.Errorf(router.InvalidRequest, tokenReasons[err], "the token of faces[%d] can't be used: %v", i, err)
		}
		templates[i], dim = t, len(t)
	}
	return nil
}

var tokenReasons = map[error]string{
	errFaceToken: router.ReasonUnknownToken, errFaceTokenExpired: router.ReasonTokenExpired, errFaceTokenPack: router.ReasonTokenOfOtherPack,
}

// compared extracts the photos among faces into templates.
func (r *FaceRequests) compared(ctx context.Context, tokens *faceTokens, faces []router.CompareFace, templates []engine.Template) ([]router.Compared, error) {
	within, cancel := context.WithTimeout(ctx, compareExtract)
	defer cancel()
	done := make([]router.Compared, len(faces))
	late, helped := false, false // no time is left; the answer says more than that
	for i, f := range faces {
		if f.Image == nil {
			helped = true
			continue
		}
		if late {
			done[i].Err = notDone()
			continue
		}
		face, err := r.Probe(within, f.Image, portrait.Refuse)
		own, of := errors.AsType[*router.Error](err)
		switch {
		case err == nil:
			templates[i] = face.Template
			done[i] = router.Compared{Attributes: face.Attributes, Token: tokens.seal(face.Template)}
			helped = true
		case outOfTime(within, err):
			late, done[i].Err = true, notDone()
		case of:
			done[i].Err, helped = own, true
		default:
			return nil, err
		}
	}
	if late && !helped {
		return nil, busyNode()
	}
	return done, nil
}

// scores compares each template with each one before it, in pieces that take turns with the images
// of all tenants. The error is Busy when the tenant's line is full.
func (r *FaceRequests) scores(ctx context.Context, templates []engine.Template) ([]int16, error) {
	scores := make([]int16, 0, len(templates)*(len(templates)-1)/2)
	end, left := func() {}, 0
	defer func() { end() }()
	for i, a := range templates {
		if left < i {
			end()
			end = func() {}
			next, err := r.turn(ctx)
			if err != nil {
				return nil, imageError(ctx, err)
			}
			end, left = next, comparePiece
		}
		left -= i
		for _, b := range templates[:i] {
			s := int16(router.NoScore)
			if a != nil && b != nil {
				s = int16(r.Table.Score(score.Dot(a, b)))
			}
			scores = append(scores, s)
		}
	}
	return scores, nil
}

// outOfTime reports whether err is about the load of the node or the time that ctx has.
func outOfTime(ctx context.Context, err error) bool {
	return router.KindOf(err) == router.Busy || ctx.Err() != nil
}

func notDone() *router.Error {
	return router.Errorf(router.Busy, router.ReasonNotDone, "the node had no time for this photo: send it again")
}
