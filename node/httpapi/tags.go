package httpapi

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/valyala/fasthttp"
	"golang.org/x/text/unicode/norm"

	"facet/router"
)

// getTags serves GET tags: the names in order of creation.
func getTags(ctx context.Context, c *call) (answer, error) {
	names, err := c.service.Tags(ctx, c.access)
	return answer{fasthttp.StatusOK, append([]string{}, names...)}, err
}

// postTag serves POST tags/{name}. It ignores the body.
func postTag(ctx context.Context, c *call) (answer, error) {
	name := c.parameters[0]
	if err := checkTagName("name", name); err != nil {
		return answer{}, err
	}
	service, err := c.intend()
	if err != nil {
		return answer{}, err
	}
	return answer{status: fasthttp.StatusOK}, service.CreateTag(ctx, c.access, name)
}

// putTag serves PUT tags/{oldName}: body newName.
func putTag(ctx context.Context, c *call) (answer, error) {
	o, err := readObject(c.body.bytes, "newName")
	if err != nil {
		return answer{}, err
	}
	to, ok, err := o.text("newName", tagMax)
	switch {
	case err != nil:
		return answer{}, err
	case !ok:
		return answer{}, missing("newName")
	}
	if err := checkTagName("newName", to); err != nil {
		return answer{}, err
	}
	from := c.parameters[0]
	if checkTagName("", from) != nil {
		return answer{}, unknownTag()
	}
	service, err := c.intend()
	if err != nil {
		return answer{}, err
	}
	return answer{status: fasthttp.StatusOK}, service.RenameTag(ctx, c.access, from, to)
}

// deleteTag serves DELETE tags/{name}.
func deleteTag(ctx context.Context, c *call) (answer, error) {
	name := c.parameters[0]
	if checkTagName("", name) != nil {
		return answer{}, unknownTag()
	}
	service, err := c.intend()
	if err != nil {
		return answer{}, err
	}
	return answer{status: fasthttp.StatusOK}, service.DeleteTag(ctx, c.access, name)
}

// unknownTag returns the answer to a path with a name that no tag can have.
func unknownTag() error { return notFound(router.ReasonUnknownTag, "The gallery has no such tag.") }

// checkTagName returns an error when a tag may not have this name (D31). field is
// the place of the name, for the error. name is UTF-8.
func checkTagName(field, name string) error {
	switch n := utf8.RuneCountInString(name); {
	case n == 0:
		return invalid("", field+" must not be empty.")
	case n > tagMax:
		return invalid("", fmt.Sprintf("%s must be at most %d characters.", field, tagMax))
	case name == "." || name == "..":
		// Many clients and proxies remove such segments from a path.
		return invalid("", field+` must not be "." or "..".`)
	case strings.ContainsFunc(name, isControl):
		return invalid("", field+" must have no control characters.")
	case !norm.NFC.IsNormalString(name):
		return invalid("", field+" must be in Unicode's normalisation form C.")
	}
	return nil
}
