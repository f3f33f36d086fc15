package httpapi

import (
	"context"
	"fmt"
	"strconv"

	"github.com/valyala/fasthttp"

	"facet/internal/answers"
	"facet/router"
)

// listing is a list of subjects that a request asks for.
type listing struct {
	list func(context.Context, Reader, router.Access) (router.Listing, error)
	one  bool // of the subject with an external id, which records name
}

// getSubjects serves GET subjects: query start, length, dir and after, or externalId, or
// expiresBefore.
var getSubjects = reads(readListing, func(ctx context.Context, c *call, r Reader, q listing) (router.Listing, error) {
	return q.list(ctx, r, c.access)
}, showListing, says[listing, router.Listing]{told: func(t *trail, q listing, list router.Listing) {
	if q.one && len(list.Entries) > 0 {
		t.salted = append(t.salted, salted(list.Entries[0].Subject, list.Entries[0].Note))
	}
}})

// readListing reads the query of a list of subjects.
func readListing(_ context.Context, c *call) (listing, error) {
	all, err := parameters(c.query)
	if err != nil {
		return listing{}, err
	}
	if _, ok := all["externalId"]; ok {
		return readExternalID(all)
	}
	if _, ok := all["expiresBefore"]; ok {
		return readExpiring(all)
	}
	p := router.Page{Order: router.CursorOrder}
	const anyStart = 1<<31 - 1 // beyond every list
	if p.Start, err = wholeParameter(all, "start", bounds{0, anyStart}, 0); err != nil {
		return listing{}, err
	}
	if p.Length, err = wholeParameter(all, "length", bounds{1, router.ListLengthMax}, router.ListLengthMax); err != nil {
		return listing{}, err
	}
	switch dir, ok := all["dir"]; {
	case dir == "desc":
		p.Order = router.Descending
	case dir == "asc":
		p.Order = router.Ascending
	case ok:
		return listing{}, invalid("", "dir must be asc or desc.")
	}
	var follows bool
	if p.After, follows, err = after(all); err != nil {
		return listing{}, err
	}
	if _, both := all["start"]; both && follows {
		return listing{}, invalid("", "A request has start or after, not both; leave start out to continue after a page.")
	}
	return listing{list: func(ctx context.Context, r Reader, access router.Access) (router.Listing, error) {
		return r.Subjects(ctx, access, p)
	}}, nil
}

// after reads the parameter of a page that follows another one.
func after(all map[string]string) (cursor string, follows bool, err error) {
	if cursor, follows = all["after"]; follows && cursor == "" {
		err = invalid("", "after must not be empty; leave it out for the first page.")
	}
	return cursor, follows, err
}

// readExternalID reads a query for the subject with an external id.
func readExternalID(all map[string]string) (listing, error) {
	for _, name := range []string{"start", "length", "dir", "after"} {
		if _, ok := all[name]; ok {
			return listing{}, invalid("", "A request has externalId or "+name+", not both.")
		}
	}
	return listing{one: true, list: func(ctx context.Context, r Reader, access router.Access) (list router.Listing, err error) {
		if external := all["externalId"]; checkTagName("", external) == nil {
			list, err = r.SubjectsWith(ctx, access, external)
		}
		return list, err
	}}, nil
}

// readExpiring reads a query with expiresBefore, length and after, for what would go.
func readExpiring(all map[string]string) (q listing, err error) {
	var p router.ExpiringPage
	if p.Before, err = parseTime("expiresBefore", all["expiresBefore"]); err != nil {
		return q, err
	}
	for _, name := range []string{"start", "dir"} {
		if _, ok := all[name]; ok {
			return q, invalid("", fmt.Sprintf("A request has expiresBefore or %s, not both; what expires is listed soonest first.", name))
		}
	}
	if p.Length, err = wholeParameter(all, "length", bounds{1, router.ListLengthMax}, router.ListLengthMax); err != nil {
		return q, err
	}
	p.After = all["after"]
	return listing{list: func(ctx context.Context, r Reader, access router.Access) (router.Listing, error) {
		return r.Expiring(ctx, access, p)
	}}, nil
}

// showListing is the last step of a list of subjects.
func showListing(_ *call, _ listing, list router.Listing) answer {
	text := answers.SubjectList{Subjects: make([]answers.Entry, len(list.Entries)), Total: list.Total, Next: list.Next}
	for i, e := range list.Entries {
		text.Subjects[i] = wireEntry(e)
	}
	if len(text.Subjects) == 0 {
		return answer{fasthttp.StatusNotFound, noSubjects{"Subjects not found.", text}}
	}
	return answer{fasthttp.StatusOK, text}
}

// wholeParameter reads a whole number of a query, or returns absent.
func wholeParameter(all map[string]string, name string, b bounds, absent int) (int, error) {
	text, ok := all[name]
	if !ok {
		return absent, nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || int(n) < b.min || int(n) > b.max {
		return 0, invalid("", fmt.Sprintf("%s must be a whole number from %d to %d.", name, b.min, b.max))
	}
	return int(n), nil
}
