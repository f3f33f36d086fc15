package httpapi

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"facet/internal/answers"
	"facet/internal/id"
	"facet/router"
)

// The states of a bulk record (interface, §3.2).
const (
	bulkNew       = "New"
	bulkProcessed = "Processed"
	bulkSuccess   = "Success"
	bulkFailed    = "Failed"
)

// postBulk serves POST jobs/bulkregister: body registrations.
var postBulk = changes(func(_ context.Context, c *call) (router.BulkRegistration, error) {
	b := router.BulkRegistration{Access: c.access}
	var err error
	if b.Items, err = readRegistrations(c.body.bytes); err == nil {
		b.Write, err = c.write()
	}
	return b, err
}, by(Writer.BulkRegister), shows[router.BulkRegistration](wireBatch), says[router.BulkRegistration, id.Batch]{})

func wireBatch(batch id.Batch) answers.Batch { return answers.Batch{BatchID: batch.String()} }

// getJobs serves GET jobs/bulkregister.
var getJobs = reads(readsNothing, func(ctx context.Context, c *call, r Reader, _ nothing) ([]router.Job, error) {
	return r.Jobs(ctx, c.access)
}, shows[nothing](wireJobs), says[nothing, []router.Job]{})

func wireJobs(list []router.Job) answers.Jobs {
	body := answers.Jobs{Jobs: make([]answers.Job, len(list))}
	for i, j := range list {
		body.Jobs[i] = answers.Job{BatchID: j.Batch.String(), Total: j.Total, Done: j.Done, LastUpdated: wireTime(j.LastUpdated)}
	}
	return body
}

// recordsPage is a page of the records of a job.
type recordsPage struct {
	batch id.Batch
	name  string
}

// getBulk serves GET jobs/bulkregister/{batchId} with the paging id in the path or
// in the query (D34).
var getBulk = reads(readRecordsPage, progress, showsItself, says[recordsPage, answers.BulkPage]{})

func readRecordsPage(_ context.Context, c *call) (q recordsPage, err error) {
	all, err := parameters(c.query)
	if err != nil {
		return q, err
	}
	q.name = all["pagingId"]
	if len(c.parameters) == 2 && c.parameters[1] != "" {
		q.name = c.parameters[1]
	}
	q.batch.UUID, err = parseID(c.parameters[0], "", "The gallery has no such job.")
	if err == nil && len(q.name) > pathIDMax {
		err = invalid("", "This is no paging id of the job.")
	}
	return q, err
}

func progress(ctx context.Context, c *call, r Reader, q recordsPage) (body answers.BulkPage, err error) {
	p, err := r.BulkProgress(ctx, c.access, q.batch, q.name)
	if err != nil {
		return body, err
	}
	body = answers.BulkPage{BatchID: q.batch.String(), Records: make([]answers.BulkRecord, len(p.Records)), LastEvaluatedKey: p.Next}
	for i, r := range p.Records {
		if body.Records[i], err = wireBulkRecord(r); err != nil {
			return body, err
		}
	}
	return body, nil
}

// wireBulkRecord returns the wire form of r.
func wireBulkRecord(r router.BulkRecord) (answers.BulkRecord, error) {
	b := answers.BulkRecord{
		ID: r.ID.String(), Filename: r.Filename, Attempts: strconv.Itoa(r.Attempts), Reason: r.Reason, Status: bulkNew,
		Note: wireNote(&r.Note),
	}
	if r.Processed {
		b.Status, b.RegisterStatus = bulkProcessed, bulkFailed
	}
	if r.Success {
		b.RegisterStatus, b.SubjectID, b.EventID = bulkSuccess, r.Subject.String(), r.Event.String()
	}
	if r.Attributes != nil {
		text, err := json.Marshal(wireAttributes(*r.Attributes))
		if err != nil {
			return b, fmt.Errorf("encode attributes: %w", err)
		}
		b.AttributesJSON, b.IgnoredFaces = string(text), wireIgnored(r.Ignored)
	}
	return b, nil
}

// bulkTokensMax is the most JSON tokens of a job's body. An object with a filename,
// one tag and an external id has ten, and unknown members are skipped.
const bulkTokensMax = 16 * router.BulkItemsMax

// readRegistrations reads the body of a job.
func readRegistrations(text []byte) ([]router.BulkItem, error) {
	text = bytes.TrimPrefix(text, []byte(byteOrderMark))
	d := &boundedDecoder{Decoder: jsontext.NewDecoder(bytes.NewBuffer(text)), left: bulkTokensMax}
	var items []router.BulkItem
	found := false
	err := d.members("The body", func(name string) error {
		if name != "registrations" || d.PeekKind() == 'n' { // null is absent
			return d.skip()
		}
		found = true
		return d.elements("registrations", func() error {
			if len(items) == router.BulkItemsMax {
				return invalid("", fmt.Sprintf("A job has at most %d registrations.", router.BulkItemsMax))
			}
			item, err := d.registration()
			items = append(items, item)
			return err
		})
	})
	switch {
	case err != nil:
		return nil, bodyError(err)
	case !found:
		return nil, missing("registrations")
	case len(items) == 0:
		return nil, invalid("", "registrations must not be empty.")
	}
	if d.PeekKind() != 0 || int(d.InputOffset()) < len(bytes.TrimRight(text, " \t\r\n")) {
		return nil, invalid("", "The body must be one JSON object.")
	}
	return items, nil
}

// registrationMembers are the members of an item that are read.
var registrationMembers = []string{"filename", "tags", "externalId", "userData", "expires"}

// registration reads one item of a job.
func (d *boundedDecoder) registration() (router.BulkItem, error) {
	var item router.BulkItem
	named := false
	err := d.members("A registration", func(name string) error {
		var raw jsontext.Value
		switch {
		case d.PeekKind() == 'n' || !slices.Contains(registrationMembers, name):
			return d.skip()
		case name == "filename":
			value, err := d.token('"', "filename must be a string.")
			item.Filename, named = value, true
			if err == nil && utf8.RuneCountInString(value) > router.BulkFilenameMax {
				return invalid("", fmt.Sprintf("filename must be at most %d bytes.", router.BulkFilenameMax))
			}
			return err
		}
		raw, err := d.ReadValue()
		if err != nil {
			return err
		}
		if name == "expires" {
			d.left--
			item.Expires, _, err = object{name: raw}.expires()
			return err
		}
		if name == "tags" {
			item.Tags, err = object{"tags": raw}.tags()
			d.left -= len(item.Tags)
			return err
		}
		d.left -= bytes.Count(raw, []byte{','}) + 1
		n, err := object{name: raw}.note()
		if name == "externalId" {
			item.Note.ExternalID = n.ExternalID
		} else {
			item.Note.UserData = n.UserData
		}
		return err
	})
	if err == nil && !named {
		err = missing("filename")
	}
	return item, err
}

// members reads an object and calls take to read the value of each member.
func (d *boundedDecoder) members(what string, take func(name string) error) error {
	if d.PeekKind() != '{' {
		return d.wrong(what + " must be a JSON object.")
	}
	if _, err := d.next(); err != nil {
		return err
	}
	for d.PeekKind() != '}' {
		token, err := d.next()
		if err != nil {
			return err
		}
		if err := take(token.String()); err != nil {
			return err
		}
	}
	_, err := d.next()
	return err
}

// elements reads an array and calls take to read each of its values.
func (d *boundedDecoder) elements(what string, take func() error) error {
	if d.PeekKind() != '[' {
		return d.wrong(what + " must be an array.")
	}
	if _, err := d.next(); err != nil {
		return err
	}
	for d.PeekKind() != ']' {
		if err := take(); err != nil {
			return err
		}
	}
	_, err := d.next()
	return err
}

// token reads a token that must be of this kind and returns its text.
func (d *boundedDecoder) token(kind jsontext.Kind, message string) (string, error) {
	if d.PeekKind() != kind {
		return "", d.wrong(message)
	}
	t, err := d.next()
	if err != nil {
		return "", err
	}
	return t.String(), nil
}

// wrong returns an InvalidRequest with message, or malformed when the body is not
// JSON at this point.
func (d *boundedDecoder) wrong(message string) error {
	if err := d.skip(); err != nil {
		return err
	}
	return invalid("", message)
}

// next reads a token and counts it.
func (d *boundedDecoder) next() (jsontext.Token, error) {
	if d.left--; d.left < 0 {
		return jsontext.Token{}, errBounds
	}
	return d.ReadToken()
}

// bodyError returns the answer to a body that could not be read.
func bodyError(err error) error {
	if f, ok := err.(*failure); ok { //nolint:errorlint // it is not wrapped here
		return f
	}
	return malformed(err)
}
