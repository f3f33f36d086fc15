package reading

import (
	"context"
	"crypto/ed25519"
	"errors"

	"golang.org/x/mod/sumdb/tlog"

	"facet/internal/answers"
	"facet/internal/id"
	"facet/internal/tiles"
	"facet/node/audit/entry"
	"facet/router"
	"facet/shard/auditlog"
	"facet/shard/seal"
)

// scanMax is the most records that a page of a filtered list looks at.
const scanMax = 20 * router.AuditReadMax

// The media types of files.
const (
	plainText   = "text/plain; charset=utf-8"
	octetStream = "application/octet-stream"
)

// Errors of File.
var (
	// ErrNoTile is returned for a path that is none of a tile, or of a tile that the log can't have.
	ErrNoTile = errors.New("there is no such tile")
	// ErrNoTileYet is returned for a tile that the log is too short for.
	ErrNoTileYet = errors.New("the audit log has no such tile yet")
	// ErrGone is returned for a bundle with records whose retention has passed.
	ErrGone = errors.New("the retention of these records has passed; their hashes are in the tile of level 0")
)

// Service has the audit logs. routing.Router is one.
type Service interface {
	AuditHead(ctx context.Context, tenant id.Tenant) (auditlog.Head, error)
	AuditEntries(ctx context.Context, tenant id.Tenant, first uint64, most int) ([]auditlog.Entry, error)
	AuditHashes(ctx context.Context, tenant id.Tenant, level int, first uint64, most int) ([]auditlog.Hash, error)
	AuditKey(tenant id.Tenant) (*seal.Key, error)
	Signer() (id.Cluster, ed25519.PrivateKey, error)
}

// Log is the audit log of a tenant, or of the cluster (id.ClusterLog).
type Log struct {
	Service Service
	Tenant  id.Tenant
}

// Page returns a page of the records that a query asks for.
func (l Log) Page(ctx context.Context, q Query) (page answers.AuditPage, err error) {
	head, err := l.Service.AuditHead(ctx, l.Tenant)
	if err != nil {
		return page, err
	}
	before := head.Size
	if q.before != nil {
		before = min(*q.before, head.Size)
	}
	page = answers.AuditPage{Size: head.Size, Records: []answers.AuditRecord{}}
	for scanned := 0; before > 0 && len(page.Records) < q.length && scanned < scanMax; scanned += router.AuditReadMax {
		first := before - min(before, router.AuditReadMax)
		shown, err := l.shown(ctx, first, int(before-first))
		if err != nil {
			return page, err
		}
		for len(shown) > 0 && len(page.Records) < q.length {
			last := shown[len(shown)-1]
			shown, before = shown[:len(shown)-1], last.Number
			if !q.takes(last) {
				continue
			}
			if !q.content {
				last.Content = nil
			}
			page.Records = append(page.Records, last)
		}
	}
	if before > 0 {
		page.Next = &before
	}
	return page, nil
}

// shown returns records as JSON shows them, with their bytes.
func (l Log) shown(ctx context.Context, first uint64, most int) ([]answers.AuditRecord, error) {
	contents, err := l.contents(ctx, first, most)
	if err != nil {
		return nil, err
	}
	list := make([]answers.AuditRecord, len(contents))
	for i, content := range contents {
		if content == nil {
			list[i] = answers.AuditRecord{Number: first + uint64(i), Expired: true}
			continue
		}
		r, err := entry.Decode(content)
		if err != nil {
			return nil, err
		}
		list[i] = r.Show(first + uint64(i))
		list[i].Content = content
	}
	return list, nil
}

// contents returns the contents of entries. An expired entry's is nil.
func (l Log) contents(ctx context.Context, first uint64, most int) ([][]byte, error) {
	key, err := l.Service.AuditKey(l.Tenant)
	if err != nil {
		return nil, err
	}
	var list [][]byte
	for len(list) < most {
		entries, err := l.Service.AuditEntries(ctx, l.Tenant, first+uint64(len(list)), most-len(list))
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
			content, err := key.Open(e.Sealed, l.Tenant.UUID[:])
			if err != nil {
				return nil, err
			}
			list = append(list, content)
		}
	}
	return list, nil
}

// File returns a file of the log and its media type, by its path in tlog-tiles: the checkpoint, a tile or a
// bundle of entries. The path "key" has the verifier key of the log's checkpoints. The errors are ErrNoTile,
// ErrNoTileYet, ErrGone, and those of the Service.
func (l Log) File(ctx context.Context, path string) (b []byte, mediaType string, err error) {
	switch path {
	case "key":
		b, err = l.key()
		return b, plainText, err
	case tiles.CheckpointPath:
		b, err = l.checkpoint(ctx)
		return b, plainText, err
	}
	t, err := tiles.ParsePath(path)
	if err != nil {
		return nil, "", ErrNoTile
	}
	if t.L == tiles.EntryLevel {
		b, err = l.bundle(ctx, t)
	} else {
		b, err = l.tile(ctx, t)
	}
	return b, octetStream, err
}

func (l Log) key() ([]byte, error) {
	cluster, key, err := l.Service.Signer()
	if err != nil {
		return nil, err
	}
	text, err := tiles.Key(tiles.Origin(cluster, l.Tenant), key.Public().(ed25519.PublicKey)) //nolint:forcetypeassert // by its doc
	return []byte(text + "\n"), err
}

func (l Log) checkpoint(ctx context.Context) ([]byte, error) {
	cluster, key, err := l.Service.Signer()
	if err != nil {
		return nil, err
	}
	head, err := l.Service.AuditHead(ctx, l.Tenant)
	if err != nil {
		return nil, err
	}
	return tiles.Checkpoint{
		Origin: tiles.Origin(cluster, l.Tenant), Tree: tlog.Tree{N: int64(head.Size), Hash: head.Root},
	}.Sign(key)
}

func (l Log) tile(ctx context.Context, t tlog.Tile) (b []byte, err error) {
	hashes, err := l.Service.AuditHashes(ctx, l.Tenant, t.L, uint64(t.N)*tiles.Width, t.W)
	if err != nil {
		return nil, err
	}
	if len(hashes) < t.W {
		return nil, ErrNoTileYet
	}
	for _, h := range hashes {
		b = append(b, h[:]...)
	}
	return b, nil
}

// bundle returns a bundle of entries.
func (l Log) bundle(ctx context.Context, t tlog.Tile) (b []byte, err error) {
	contents, err := l.contents(ctx, uint64(t.N)*tiles.Width, t.W)
	if err != nil {
		return nil, err
	}
	for _, content := range contents {
		if content == nil {
			return nil, ErrGone
		}
		if b, err = tiles.AppendEntry(b, content); err != nil {
			return nil, err
		}
	}
	return b, nil
}
