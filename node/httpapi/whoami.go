package httpapi

import (
	"context"

	"facet/internal/answers"
	"facet/router"
)

// getWhoami serves GET whoami.
var getWhoami = reads(readsNothing, whoami, showsItself, says[nothing, answers.Whoami]{})

func whoami(ctx context.Context, c *call, r Reader, _ nothing) (answers.Whoami, error) {
	body := answers.Whoami{Role: c.key.Role.String(), Holder: c.key.Holder}
	for _, g := range c.key.Galleries {
		body.Galleries = append(body.Galleries, g.String())
	}
	if !c.key.Ends.IsZero() {
		body.Ends = wireTime(c.key.Ends)
	}
	if !c.access.Gallery.IsZero() {
		g, err := r.Gallery(ctx, c.key.Tenant, c.access.Gallery)
		if router.KindOf(err) == router.NotFound { // it was deleted just now
			err = forbidden(whyAPIKey)
		}
		if err != nil {
			return body, err
		}
		body.Gallery = &answers.GalleryRoom{ID: g.ID.String(), Name: g.Name, Size: int(g.Size), Count: g.Count}
	}
	return body, nil
}
