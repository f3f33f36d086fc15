package httpapi

import (
	"context"
	"crypto/ed25519"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/mod/sumdb/tlog"

	"facet/internal/id"
	"facet/internal/tiles"
	"facet/node/audit/entry"
	"facet/router"
	"facet/shard/auditlog"
	"facet/shard/seal"
)

const (
	auditLengthMax     = 200
	auditLengthDefault = 50
	// auditScanMax is the most records that a page of a filtered list looks at.
	auditScanMax = 20 * router.AuditReadMax

	auditPrefix = "/api/audit/"
	plainText   = "text/plain; charset=utf-8"
	octetStream = "application/octet-stream"
)

// AuditService reads audit logs. router.Router is one.
type AuditService interface {
	AuditHead(ctx context.Context, tenant id.Tenant) (auditlog.Head, error)
	AuditEntries(ctx context.Context, tenant id.Tenant, first uint64, most int) ([]auditlog.Entry, error)
	AuditHashes(ctx context.Context, tenant id.Tenant, level int, first uint64, most int) ([]auditlog.Hash, error)
	AuditKey(tenant id.Tenant) (*seal.Key, error)
	Signer() (id.Cluster, ed25519.PrivateKey, error)
}

// auditBody is a page of records, the newest first.
type auditBody struct {
	// Size is the number of records in the log.
	Size uint64 `json:"size"`
	// Recording reports whether requests of the tenant have records now.
	Recording bool          `json:"recording"`
	Records   []auditRecord `json:"records"`
	// Next is the value of before for the next page, or absent after the last one.
	Next *uint64 `json:"next,omitzero"`
}

// auditRecord is a record of a list, with its bytes if they were asked for.
type auditRecord struct {
	entry.Shown
	Content []byte `json:"content,omitzero"`
}

// auditReads is how the operation of a read of the audit log begins.
const auditReads = fasthttp.MethodGet + " /api/audit"

// auditFilter says which records a list has.
type auditFilter struct {
	operation, holder, key, kind string
	status                       int
	since, until                 time.Time
	noReads                      bool // leaves out reads of the log
	content                      bool // the list has the records' bytes
}

func (f auditFilter) takes(s entry.Shown) bool {
	return (f.operation == "" || strings.Contains(s.Operation, f.operation)) && (f.holder == "" || s.Holder == f.holder) &&
		(f.key == "" || s.Key == f.key) && (f.kind == "" || s.Kind == f.kind) && (f.status == 0 || s.Status == f.status) &&
		(f.since.IsZero() || !s.Time.Before(f.since)) && (f.until.IsZero() || s.Time.Before(f.until)) &&
		(!f.noReads || !strings.HasPrefix(s.Operation, auditReads))
}

// readAuditFilter reads the query of a list.
func readAuditFilter(all map[string]string) (f auditFilter, err error) {
	f = auditFilter{operation: all["operation"], holder: all["holder"], key: all["key"], kind: all["kind"]}
	if f.status, err = wholeParameter(all, "status", bounds{100, 599}, 0); err != nil {
		return f, err
	}
	reads, err := boolParameter(all, "reads", true)
	if err != nil {
		return f, err
	}
	f.noReads = !reads
	if f.content, err = boolParameter(all, "content", false); err != nil {
		return f, err
	}
	for name, at := range map[string]*time.Time{"since": &f.since, "until": &f.until} {
		text, ok := all[name]
		if !ok {
			continue
		}
		if *at, err = time.Parse(time.RFC3339, text); err != nil {
			return f, invalid("", name+" must be a time such as 2026-11-27T15:04:05Z.")
		}
	}
	return f, nil
}

// boolParameter returns the value of a parameter that is true or false.
func boolParameter(all map[string]string, name string, otherwise bool) (bool, error) {
	text, ok := all[name]
	if !ok {
		return otherwise, nil
	}
	if text != "true" && text != "false" {
		return false, invalid("", name+" must be true or false.")
	}
	return text == "true", nil
}

// getAudit serves GET audit: query before, length, and the fields of the filter.
func getAudit(ctx context.Context, c *call) (answer, error) {
	all, err := parameters(c.query)
	if err != nil {
		return answer{}, err
	}
	filter, err := readAuditFilter(all)
	if err != nil {
		return answer{}, err
	}
	length, err := wholeParameter(all, "length", bounds{1, auditLengthMax}, auditLengthDefault)
	if err != nil {
		return answer{}, err
	}
	head, err := c.service.AuditHead(ctx, c.key.Tenant)
	if err != nil {
		return answer{}, err
	}
	before := head.Size
	if text, ok := all["before"]; ok {
		if before, err = strconv.ParseUint(text, 10, 63); err != nil {
			return answer{}, invalid("", "before must be the number of a record: next of the page before.")
		}
		before = min(before, head.Size)
	}
	page := auditBody{Size: head.Size, Recording: c.recorded(), Records: []auditRecord{}}
	for scanned := 0; before > 0 && len(page.Records) < length && scanned < auditScanMax; scanned += router.AuditReadMax {
		first := before - min(before, router.AuditReadMax)
		shown, err := c.shown(ctx, first, int(before-first))
		if err != nil {
			return answer{}, err
		}
		for len(shown) > 0 && len(page.Records) < length {
			last := shown[len(shown)-1]
			shown, before = shown[:len(shown)-1], last.Number
			if !filter.takes(last.Shown) {
				continue
			}
			if !filter.content {
				last.Content = nil
			}
			page.Records = append(page.Records, last)
		}
	}
	if before > 0 {
		page.Next = &before
	}
	return answer{fasthttp.StatusOK, page}, nil
}

// shown returns records of the tenant's log as JSON shows them, with their bytes.
func (c *call) shown(ctx context.Context, first uint64, most int) ([]auditRecord, error) {
	contents, err := c.contents(ctx, first, most)
	if err != nil {
		return nil, err
	}
	list := make([]auditRecord, len(contents))
	for i, content := range contents {
		if content == nil {
			list[i].Shown = entry.Shown{Number: first + uint64(i), Expired: true}
			continue
		}
		r, err := entry.Decode(content)
		if err != nil {
			return nil, err
		}
		list[i] = auditRecord{r.Show(first + uint64(i)), content}
	}
	return list, nil
}

// contents returns the contents of entries of the tenant's log. An expired entry's is nil.
func (c *call) contents(ctx context.Context, first uint64, most int) ([][]byte, error) {
	key, err := c.service.AuditKey(c.key.Tenant)
	if err != nil {
		return nil, err
	}
	var list [][]byte
	for len(list) < most {
		entries, err := c.service.AuditEntries(ctx, c.key.Tenant, first+uint64(len(list)), most-len(list))
		if err != nil {
			return nil, err
		}
		if len(entries) == 0 {
			return nil, router.Errorf(router.NotFound, "", "the audit log has no record %d", first+uint64(len(list)))
		}
		for _, e := range entries {
			if len(e.Sealed) == 0 {
				list = append(list, nil)
				continue
			}
			content, err := key.Open(e.Sealed, c.key.Tenant.UUID[:])
			if err != nil {
				return nil, err
			}
			list = append(list, content)
		}
	}
	return list, nil
}

// getAuditKey serves GET audit/key: the verifier key of the log's checkpoints.
func getAuditKey(_ context.Context, c *call) (answer, error) {
	cluster, key, err := c.service.Signer()
	if err != nil {
		return answer{}, err
	}
	text, err := tiles.Key(tiles.Origin(cluster, c.key.Tenant), key.Public().(ed25519.PublicKey)) //nolint:forcetypeassert // by its doc
	return answer{fasthttp.StatusOK, rawBody{[]byte(text + "\n"), plainText}}, err
}

// getCheckpoint serves GET audit/checkpoint.
func getCheckpoint(ctx context.Context, c *call) (answer, error) {
	cluster, key, err := c.service.Signer()
	if err != nil {
		return answer{}, err
	}
	head, err := c.service.AuditHead(ctx, c.key.Tenant)
	if err != nil {
		return answer{}, err
	}
	signed, err := tiles.Checkpoint{
		Origin: tiles.Origin(cluster, c.key.Tenant), Tree: tlog.Tree{N: int64(head.Size), Hash: head.Root},
	}.Sign(key)
	return answer{fasthttp.StatusOK, rawBody{signed, plainText}}, err
}

// getTile serves GET audit/tile/…: a tile or a bundle of entries.
func getTile(ctx context.Context, c *call) (answer, error) {
	t, err := tiles.ParsePath(strings.TrimPrefix(c.path, auditPrefix))
	if err != nil {
		return answer{}, notFound("", "There is no such tile.")
	}
	if t.L == tiles.EntryLevel {
		return c.bundle(ctx, t)
	}
	hashes, err := c.service.AuditHashes(ctx, c.key.Tenant, t.L, uint64(t.N)*tiles.Width, t.W)
	if err != nil {
		return answer{}, err
	}
	if len(hashes) < t.W {
		return answer{}, notFound("", "The audit log has no such tile yet.")
	}
	var b []byte
	for _, h := range hashes {
		b = append(b, h[:]...)
	}
	return answer{fasthttp.StatusOK, rawBody{b, octetStream}}, nil
}

// bundle returns a bundle of entries.
func (c *call) bundle(ctx context.Context, t tlog.Tile) (answer, error) {
	contents, err := c.contents(ctx, uint64(t.N)*tiles.Width, t.W)
	if err != nil {
		return answer{}, err
	}
	var b []byte
	for _, content := range contents {
		if content == nil {
			return answer{}, gateway(fasthttp.StatusGone, "The retention of these records has passed; their hashes are in the tile of level 0.")
		}
		if b, err = tiles.AppendEntry(b, content); err != nil {
			return answer{}, err
		}
	}
	return answer{fasthttp.StatusOK, rawBody{b, octetStream}}, nil
}
