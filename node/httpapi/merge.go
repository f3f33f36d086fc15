package httpapi

import (
	"context"

	"github.com/valyala/fasthttp"

	"facet/internal/answers"
	"facet/internal/id"
	"facet/router"
)

// postMerge serves POST subjects/{subjectId}/merge: body source, the id of the subject whose
// events move to the subject of the path. A retry finds its outcome when the source is gone,
// so source can't be an external id.
var postMerge = changes(readMerge, func(ctx context.Context, _ *call, w Writer, m router.Merging) (nothing, error) {
	return nothing{}, w.Merge(ctx, m)
}, func(_ *call, m router.Merging, _ nothing) answer {
	return answer{fasthttp.StatusOK, answers.Merged{ID: m.Target.String()}}
}, says[router.Merging, nothing]{asked: func(t *trail, m router.Merging) { t.names(m.Target, m.Source) }})

func readMerge(ctx context.Context, c *call) (router.Merging, error) {
	m := router.Merging{Access: c.access}
	o, err := readObject(c.body.bytes, "source")
	if err != nil {
		return m, err
	}
	text, ok, err := o.text("source", pathIDMax)
	switch {
	case err != nil:
		return m, err
	case !ok:
		return m, missing("source")
	}
	source, err := id.Parse(text)
	if err != nil {
		return m, invalid(router.ReasonUnknownSource, "source must be the id of a subject of this gallery.")
	}
	if m.Write, err = c.write(); err != nil {
		return m, err
	}
	if m.Target, err = subjectOfPath(ctx, c); err == nil {
		m.Source = id.Subject{UUID: source}
	}
	return m, err
}
