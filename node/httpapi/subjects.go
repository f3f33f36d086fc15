package httpapi

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/valyala/fasthttp"

	"facet/internal/id"
	"facet/internal/trace"
	"facet/router"
)

// postSubjects serves POST subjects: body face, and tags, externalId, userData and expires in
// version 1.1.
func postSubjects(ctx context.Context, c *call) (answer, error) {
	_, parsing := trace.Start(ctx, trace.Stage{Name: trace.Parse})
	r, err := readRegistration(c)
	parsing.End(err)
	if err != nil {
		return answer{}, err
	}
	service, err := c.intend()
	if err != nil {
		return answer{}, err
	}
	registered, err := service.Register(ctx, r)
	if registered.Known != nil {
		noteGuard(c, r.Image, registered)
	}
	return c.registered(fasthttp.StatusCreated, registered, err)
}

// readRegistration reads the body of a registration.
func readRegistration(c *call) (router.Registration, error) {
	r := router.Registration{Access: c.access}
	o, err := readObject(c.body.bytes, "face", "tags", "externalId", "userData", "expires")
	if err != nil {
		return r, err
	}
	var errs [5]error
	if c.version != v1 {
		r.Tags, errs[0] = o.tags()
		r.Note, errs[1] = o.note()
		r.Expires, _, errs[4] = o.expires()
	}
	r.Write, errs[2] = c.write()
	r.Image, errs[3] = o.image("face")
	return r, firstOf(errs[:]...)
}

// deleteSubject serves DELETE subjects/{subjectId}. Its records don't name the subject: the request id stands
// beside the subject's id in the receipt of an erasure.
func deleteSubject(ctx context.Context, c *call) (answer, error) {
	subject, err := c.findSubject(ctx, c.parameters[0])
	if err != nil {
		return answer{}, err
	}
	service, err := c.intend()
	if err != nil {
		return answer{}, err
	}
	c.committed, err = service.Unregister(ctx, c.access, subject, id.Operation(c.requestBytes()))
	return answer{status: fasthttp.StatusNoContent}, err
}

// getSubjects serves GET subjects: query start, length, dir and after, or externalId, or
// expiresBefore.
func getSubjects(ctx context.Context, c *call) (answer, error) {
	all, err := parameters(c.query)
	if err != nil {
		return answer{}, err
	}
	if _, ok := all["externalId"]; ok {
		return getSubjectWith(ctx, c, all)
	}
	if _, ok := all["expiresBefore"]; ok {
		return getExpiring(ctx, c, all)
	}
	p := router.Page{Order: router.CursorOrder}
	const anyStart = 1<<31 - 1 // beyond every list
	if p.Start, err = wholeParameter(all, "start", bounds{0, anyStart}, 0); err != nil {
		return answer{}, err
	}
	if p.Length, err = wholeParameter(all, "length", bounds{1, router.ListLengthMax}, router.ListLengthMax); err != nil {
		return answer{}, err
	}
	switch dir, ok := all["dir"]; {
	case dir == "desc":
		p.Order = router.Descending
	case dir == "asc":
		p.Order = router.Ascending
	case ok:
		return answer{}, invalid("", "dir must be asc or desc.")
	}
	var follows bool
	if p.After, follows = all["after"]; follows {
		if _, both := all["start"]; both {
			return answer{}, invalid("", "A request has start or after, not both; leave start out to continue after a page.")
		}
		if p.After == "" {
			return answer{}, invalid("", "after must not be empty; leave it out for the first page.")
		}
	}
	return listed(c.service.Subjects(ctx, c.access, p))
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

// parseSubject parses a subject's id.
func parseSubject(text string) (id.Subject, error) {
	u, err := parseID(text, router.ReasonSubjectNotFound, "There is no subject with this id.")
	return id.Subject{UUID: u}, err
}

// parseID parses an id in a path. A malformed id can't exist, so it gets the same 404
// as an unknown one (D10).
func parseID(text, reason, message string) (id.UUID, error) {
	u, err := id.Parse(text)
	if err != nil {
		return u, notFound(reason, message)
	}
	return u, nil
}

// write returns the identity of the request as a write (D8): its Idempotency-Key,
// or else its signature. The same photo, signed again, is another write.
func (c *call) write() (router.Write, error) {
	w := router.Write{}
	copy(w.Request[:], c.body.hash[:])
	name, keyed := c.header("idempotency-key")
	if keyed && (name == "" || len(name) > idempotencyKeyMax) {
		return w, invalid("", fmt.Sprintf("Idempotency-Key must be 1 to %d characters.", idempotencyKeyMax))
	}
	w.Keyed = keyed
	kind := "key"
	if !keyed {
		kind, name = "signature", c.claim.Signature
	}
	hash := sha256.New()
	for _, part := range []string{
		"facet operation 1", c.key.Tenant.String(), c.access.Application.String(), c.method, c.path, kind, name,
	} {
		var length [4]byte
		binary.BigEndian.PutUint32(length[:], uint32(len(part)))
		hash.Write(length[:])
		hash.Write([]byte(part))
	}
	w.Operation = id.Operation(hash.Sum(nil)[:16])
	return w, nil
}
