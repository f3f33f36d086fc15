package httpapi

import (
	"context"

	"github.com/valyala/fasthttp"

	"facet/router"
)

// getTags serves GET tags: the names in order of creation.
var getTags = reads(readsNothing, func(ctx context.Context, c *call, r Reader, _ nothing) ([]string, error) {
	return r.Tags(ctx, c.access)
}, shows[nothing](func(names []string) []string { return append([]string{}, names...) }), says[nothing, []string]{})

// postTag serves POST tags/{name}. It ignores the body.
var postTag = changes(func(_ context.Context, c *call) (string, error) {
	return c.parameters[0], checkTagName("name", c.parameters[0])
}, func(ctx context.Context, c *call, w Writer, name string) (nothing, error) {
	return nothing{}, w.CreateTag(ctx, c.access, name)
}, showsStatus[string](fasthttp.StatusOK), says[string, nothing]{})

// renaming gives a tag another name.
type renaming struct{ from, to string }

// putTag serves PUT tags/{oldName}: body newName.
var putTag = changes(func(ctx context.Context, c *call) (q renaming, err error) {
	o, err := readObject(c.body.bytes, "newName")
	if err != nil {
		return q, err
	}
	var ok bool
	switch q.to, ok, err = o.text("newName", tagMax); {
	case err != nil:
		return q, err
	case !ok:
		return q, missing("newName")
	}
	if err := checkTagName("newName", q.to); err != nil {
		return q, err
	}
	q.from, err = tagOfPath(ctx, c)
	return q, err
}, func(ctx context.Context, c *call, w Writer, q renaming) (nothing, error) {
	return nothing{}, w.RenameTag(ctx, c.access, q.from, q.to)
}, showsStatus[renaming](fasthttp.StatusOK), says[renaming, nothing]{})

// deleteTag serves DELETE tags/{name}.
var deleteTag = changes(tagOfPath, func(ctx context.Context, c *call, w Writer, name string) (nothing, error) {
	return nothing{}, w.DeleteTag(ctx, c.access, name)
}, showsStatus[string](fasthttp.StatusOK), says[string, nothing]{})

// tagOfPath returns the name of the tag that the path names.
func tagOfPath(_ context.Context, c *call) (string, error) {
	name := c.parameters[0]
	if checkTagName("", name) != nil {
		return "", notFound(router.ReasonUnknownTag, "The gallery has no such tag.")
	}
	return name, nil
}
