package httpapi

import (
	"context"

	"facet/router"
)

// whoamiBody describes the access key of a request, and the gallery of its API key if it has one.
type whoamiBody struct {
	Role      string    `json:"role"`
	Holder    string    `json:"holder,omitzero"`
	Galleries []string  `json:"galleries,omitzero"` // the only ones that the key may use
	Ends      string    `json:"ends,omitzero"`
	Gallery   *roomBody `json:"gallery,omitzero"`
}

// roomBody says how full a gallery is.
type roomBody struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Size  int    `json:"size"`
	Count int    `json:"count"`
}

// getWhoami serves GET whoami.
var getWhoami = reads(readsNothing, whoami, showsItself, says[nothing, whoamiBody]{})

func whoami(ctx context.Context, c *call, r Reader, _ nothing) (whoamiBody, error) {
	body := whoamiBody{Role: c.key.Role.String(), Holder: c.key.Holder}
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
		body.Gallery = &roomBody{g.ID.String(), g.Name, int(g.Size), g.Count}
	}
	return body, nil
}
