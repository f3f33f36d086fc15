package faces

import (
	"context"
	"errors"
	"fmt"

	"facet/engine"
	"facet/engine/portrait"
	"facet/engine/score"
	"facet/router"
)

// probesScore is the least score of any two photos of one probe. One in a hundred pairs of two
// persons reaches it.
const probesScore = 4000

// Probed is the one face of a probe. With several photos, its template is their mean, and its
// attributes are those of the first.
type Probed struct {
	portrait.Taken
	// all has each photo, or nothing if there is one photo.
	All []router.Probed
}

// Probes extracts the one face of each photo of a probe, one after the other. Photos that disagree
// are refused: their mean would be like nobody.
func (r *FaceRequests) Probes(ctx context.Context, photos router.Probe, rule portrait.Rule) (Probed, error) {
	if len(photos) == 1 {
		face, err := r.Probe(ctx, photos[0], rule)
		return Probed{Taken: face}, err
	}
	var mean score.Mean
	defer mean.Clear()
	var faces []engine.Face
	var all []router.Probed
	for i, photo := range photos {
		face, err := r.Probe(ctx, photo, rule)
		if err != nil {
			return Probed{}, ofPhoto(i, err)
		}
		mean.Add(face.Template)
		faces, all = append(faces, face.Face), append(all, router.Probed{Attributes: face.Attributes, Ignored: face.Ignored})
	}
	if err := r.agree(faces); err != nil {
		return Probed{}, err
	}
	one := faces[0]
	one.Template = mean.Unit()
	return Probed{portrait.Taken{Face: one}, all}, nil
}

// agree returns an error if two of the faces are not alike. It names the two that are least alike.
func (r *FaceRequests) agree(faces []engine.Face) error {
	least, a, b := probesScore, 0, 0
	for i := range faces {
		for j := range i {
			if s := r.Table.Score(score.Dot(faces[j].Template, faces[i].Template)); s < least {
				least, a, b = s, j, i
			}
		}
	}
	if a == b {
		return nil
	}
	return router.Errorf(router.InvalidRequest, router.ReasonProbesDisagree, "photos %d and %d of probes don't show the same person: their score is %d, below %d",
		a+1, b+1, least, probesScore)
}

// ofPhoto names the photo, counted from 0, in the message of a client's error.
func ofPhoto(i int, err error) error {
	if own, ok := errors.AsType[*router.Error](err); ok {
		named := *own
		named.Message = fmt.Sprintf("in photo %d of probes %s", i+1, own.Message)
		return &named
	}
	return err
}
