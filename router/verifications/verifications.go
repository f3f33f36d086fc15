// Package verifications compares a probe with a photo or with a subject, and opens a case for a
// doubtful score.
package verifications

import (
	"context"

	"facet/engine/portrait"
	"facet/engine/score"
	"facet/internal/id"
	"facet/router"
	"facet/router/admission"
	"facet/router/calls"
	"facet/router/cluster"
	"facet/router/faces"
	"facet/router/reviews"
	"facet/shard"
	"facet/shard/job"
)

// VerifyFace compares the faces of two images. It knows no application, so it refuses an image of
// several faces. Below ThresholdDefault the error is
// NotVerified and contains the score.
func (r *VerificationRequests) VerifyFace(ctx context.Context, face []byte, probe router.Probe) (router.Verification, error) {
	a, err := r.faces.Probe(ctx, face, portrait.Refuse)
	if err != nil {
		return router.Verification{}, err
	}
	b, err := r.faces.Probes(ctx, probe, portrait.Refuse)
	if err != nil {
		return router.Verification{}, err
	}
	v, err := atThreshold(r.faces.Table.Score(score.Dot(a.Template, b.Template)), router.ThresholdDefault)
	v.Probes = b.All
	return v, err
}

// VerifySubject compares the probe with each active event of a subject, and with the
// subject's own template if its gallery wants these, and returns the best score. Below
// the application's verify threshold the error is NotVerified, and the Verification has the note. In the
// review band a case may be opened.
func (r *VerificationRequests) VerifySubject(ctx context.Context, q router.SubjectVerification) (router.Verification, error) {
	subject := q.Subject
	g, app, err := r.cluster.At(ctx, q.Access, subject.Shard(), admission.SubjectNotFound)
	if err != nil {
		return router.Verification{}, err
	}
	probe, err := r.faces.Probes(ctx, q.Probe, portrait.Rule(app.MultipleFaces))
	if err != nil {
		return router.Verification{}, err
	}
	best, err := calls.CallAny(ctx, r.cluster.Calls, shardBest, subject.Shard(), bestQuery{
		Gallery: g.ID, Generation: g.Generation, Subject: subject, Probe: probe.Template, Model: probe.Model,
		Means: g.SubjectTemplates,
	})
	if err != nil {
		return router.Verification{}, err
	}
	if !best.Known {
		return router.Verification{}, admission.SubjectNotFound()
	}
	v, err := atThreshold(best.Score, app.VerifyThreshold)
	if q.Doubt != nil && reviews.InReview(&app, best.Score, app.VerifyThreshold) {
		key, failed := r.cluster.DataKey(g.Gallery)
		if failed != nil {
			return v, failed
		}
		c := job.Case{Subject: subject, Score: best.Score, Probe: reviews.ProbeName(key, g.Gallery, probe.Template)}
		v.Case, err = r.reviews.Doubt(ctx, g, app, c, q.Doubt)
	}
	v.Ignored, v.Probes = probe.Ignored, probe.All
	if len(best.Noted.Note) == 0 {
		return v, err
	}
	key, failed := r.cluster.DataKey(g.Gallery)
	if failed == nil {
		v.Note, failed = g.OpenNote(key, subject, best.Noted)
	}
	if failed != nil {
		return v, failed
	}
	return v, err
}

// atThreshold returns a verification with score. Below threshold the error is
// NotVerified.
func atThreshold(score, threshold int) (router.Verification, error) {
	if score < threshold {
		return router.Verification{Score: score}, &router.Error{
			Kind: router.NotVerified, Reason: router.ReasonNotVerified, Score: score,
			Message: "the subject was not verified: the score is below the threshold",
		}
	}
	return router.Verification{Score: score}, nil
}

// VerificationRequests serves verifications.
type VerificationRequests struct {
	cluster *cluster.Cluster
	faces   *faces.FaceRequests
	reviews *reviews.CaseRequests
}

// bestQuery asks a subject's shard for the best score among the subject's events.
type bestQuery struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Subject    id.Subject `cbor:"3,keyasint"`
	Probe      []float32  `cbor:"4,keyasint"`
	Model      id.Model   `cbor:"5,keyasint"` // of the probe
	// Means asks for the subject's own template, too.
	Means bool `cbor:"6,keyasint,omitempty"`
}

type bestAnswer struct {
	Known bool `cbor:"1,keyasint"`
	Score int  `cbor:"2,keyasint"`
	// Noted has the subject's note, if there is one.
	Noted shard.Active `cbor:"3,keyasint,omitzero"`
}

var shardBest = cluster.ShardReadAny("shard.best", func(ctx context.Context, r *cluster.Cluster, s *shard.Shard, q bestQuery) (bestAnswer, error) {
	key, err := cluster.KeyOf(ctx, r, q.Gallery)
	if err != nil {
		return bestAnswer{}, err
	}
	best, known, err := s.Best(q.Gallery, key, q.Subject, shard.Query{Probe: q.Probe, Means: q.Means})
	if other := s.CheckModel(q.Gallery, q.Model); other != nil {
		return bestAnswer{}, other
	}
	a := bestAnswer{Known: known, Score: best}
	if err != nil {
		return a, err
	}
	noted, err := s.NotesOf(q.Gallery, q.Generation, []id.Subject{q.Subject})
	if len(noted) == 1 {
		a.Noted = noted[0]
	}
	return a, err
})
