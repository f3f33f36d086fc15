package reading

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"facet/internal/answers"
	"facet/node/wire"
	"facet/router"
)

const (
	lengthMax     = 200
	lengthDefault = 50
)

// reads are how the operation of a read of an audit log begins: a tenant's, and the cluster's.
var reads = []string{http.MethodGet + " /api/audit", http.MethodGet + " " + wire.PathAudit}

// Query says which records a page has.
type Query struct {
	operation, holder, key, kind string
	status                       int
	since, until                 time.Time
	noReads                      bool // leaves out reads of the log
	content                      bool // the page has the records' bytes
	length                       int
	before                       *uint64
}

func (q Query) takes(s answers.AuditRecord) bool {
	return (q.operation == "" || strings.Contains(s.Operation, q.operation)) && (q.holder == "" || s.Holder == q.holder) &&
		(q.key == "" || s.Key == q.key) && (q.kind == "" || s.Kind == q.kind) && (q.status == 0 || s.Status == q.status) &&
		(q.since.IsZero() || !s.Time.Before(q.since)) && (q.until.IsZero() || s.Time.Before(q.until)) &&
		(!q.noReads || !slices.ContainsFunc(reads, func(r string) bool { return strings.HasPrefix(s.Operation, r) }))
}

// ParseQuery reads the parameters of a request for a page. An error is an InvalidRequest of package router.
func ParseQuery(all map[string]string) (q Query, err error) {
	q = Query{operation: all["operation"], holder: all["holder"], key: all["key"], kind: all["kind"]}
	if q.status, err = whole(all, "status", 100, 599, 0); err != nil {
		return q, err
	}
	if q.length, err = whole(all, "length", 1, lengthMax, lengthDefault); err != nil {
		return q, err
	}
	withReads, err := yes(all, "reads", true)
	if err != nil {
		return q, err
	}
	q.noReads = !withReads
	if q.content, err = yes(all, "content", false); err != nil {
		return q, err
	}
	for name, at := range map[string]*time.Time{"since": &q.since, "until": &q.until} {
		text, ok := all[name]
		if !ok {
			continue
		}
		if *at, err = time.Parse(time.RFC3339, text); err != nil {
			return q, invalid("%s must be a time such as 2026-11-27T15:04:05Z", name)
		}
	}
	if text, ok := all["before"]; ok {
		n, err := strconv.ParseUint(text, 10, 63)
		if err != nil {
			return q, invalid("before must be the number of a record: next of the page before")
		}
		q.before = &n
	}
	return q, nil
}

func invalid(format string, args ...any) error {
	return router.Errorf(router.InvalidRequest, "", format, args...)
}

// yes returns the value of a parameter that is true or false.
func yes(all map[string]string, name string, otherwise bool) (bool, error) {
	text, ok := all[name]
	if !ok {
		return otherwise, nil
	}
	if text != "true" && text != "false" {
		return false, invalid("%s must be true or false", name)
	}
	return text == "true", nil
}

// whole returns the value of a parameter that is a whole number.
func whole(all map[string]string, name string, least, most, otherwise int) (int, error) {
	text, ok := all[name]
	if !ok {
		return otherwise, nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || int(n) < least || int(n) > most {
		return 0, invalid("%s must be a whole number from %d to %d", name, least, most)
	}
	return int(n), nil
}
