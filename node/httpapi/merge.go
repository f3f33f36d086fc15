package httpapi

import (
	"context"

	"github.com/valyala/fasthttp"

	"facet/internal/id"
	"facet/router"
)

// postMerge serves POST subjects/{subjectId}/merge: body source, the id of the subject whose
// events move to the subject of the path. A retry finds its outcome when the source is gone,
// so source can't be an external id.
func postMerge(ctx context.Context, c *call) (answer, error) {
	o, err := readObject(c.body.bytes, "source")
	if err != nil {
		return answer{}, err
	}
	m := router.Merging{Access: c.access}
	text, ok, err := o.text("source", pathIDMax)
	switch {
	case err != nil:
		return answer{}, err
	case !ok:
		return answer{}, missing("source")
	}
	source, err := id.Parse(text)
	if err != nil {
		return answer{}, invalid(router.ReasonUnknownSource, "source must be the id of a subject of this gallery.")
	}
	m.Source = id.Subject{UUID: source}
	if m.Write, err = c.write(); err != nil {
		return answer{}, err
	}
	if m.Target, err = c.subject(ctx, c.parameters[0]); err != nil {
		return answer{}, err
	}
	if err := c.name(ctx, m.Source); err != nil {
		return answer{}, err
	}
	service, err := c.intend()
	if err != nil {
		return answer{}, err
	}
	return answer{fasthttp.StatusOK, mergedBody{ID: m.Target.String()}}, service.Merge(ctx, m)
}
