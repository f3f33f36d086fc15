// Package duplicates compares galleries with themselves, and remembers which pairs of subjects are
// different people.
//
// A gallery is compared with itself by a job (shard/job), whose items are blocks of events. Its home is
// the first shard of the gallery, which stays the first when the gallery grows. The probes of a block
// are compared with the block's shard and those after it in the gallery's list, so each pair of shards
// is compared once (work.go).
package duplicates

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"

	"facet/internal/id"
	"facet/raftfsm/shardfsm"
	"facet/router"
	"facet/router/bulk"
	"facet/router/cluster"
	"facet/router/lookup"
	"facet/shard"
	"facet/shard/seal"
)

const (
	// blockEntries is how many entries a block has, and blocksMost how many blocks a gallery has before
	// its blocks grow, to blockEntriesMax at most: the templates of a block are one message.
	blockEntries, blockEntriesMax = 512, 10_000
	blocksMost                    = 50_000
	// blocksPage is how many blocks of a job are read at once.
	blocksPage = 256
)

// comparable returns the gallery of an access, with its present shards, and its key.
func (r *DuplicateRequests) comparable(ctx context.Context, access router.Access) (cluster.Gallery, *seal.Key, error) {
	if err := r.cluster.SyncMeta(ctx); err != nil { // the gallery may have grown
		return cluster.Gallery{}, nil, err
	}
	g, _, err := r.cluster.Of(access)
	if err != nil {
		return g, nil, err
	}
	key, err := r.cluster.DataKey(g.Gallery)
	return g, key, err
}

func unknownDuplicatesCursor() error {
	return router.Errorf(router.InvalidRequest, router.ReasonUnknownCursor, "the report has changed, or the cursor in after is not one of it; read the report from its start")
}

// present returns the pairs of which both subjects are still there, with their notes.
func (r *DuplicateRequests) present(ctx context.Context, g cluster.Gallery, list []router.DuplicatePair) ([]router.DuplicatePair, error) {
	var subjects []id.Subject
	for _, p := range list {
		subjects = append(subjects, p.Subjects[0].Subject, p.Subjects[1].Subject)
	}
	there, err := lookup.Present(ctx, r.cluster, g, subjects, true)
	if err != nil {
		return nil, err
	}
	key, err := r.cluster.DataKey(g.Gallery)
	if err != nil {
		return nil, err
	}
	left := make([]router.DuplicatePair, 0, len(list))
	for _, p := range list {
		a, first := there[p.Subjects[0].Subject]
		b, second := there[p.Subjects[1].Subject]
		if !first || !second {
			continue
		}
		for i, noted := range []shard.Active{a, b} {
			if p.Subjects[i].Note, err = g.OpenNote(key, p.Subjects[i].Subject, noted); err != nil {
				return nil, err
			}
		}
		left = append(left, p)
	}
	return left, nil
}

// A cursor of a report has the index of the next pair, and how many pairs there are: when subjects go,
// the indexes change. Bytes of a hash detect a mistyped cursor, and one of another report.
const duplicatesCursorBytes = 12

func duplicatesCursor(of id.Batch, total, next int) string {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, duplicatesCursorBytes), uint32(next))
	b = binary.BigEndian.AppendUint32(b, uint32(total))
	h := sha256.New()
	h.Write([]byte("facet duplicates 1"))
	h.Write(of.UUID[:])
	h.Write(b)
	return base64.RawURLEncoding.EncodeToString(append(b, h.Sum(nil)[:duplicatesCursorBytes-len(b)]...))
}

// readDuplicatesCursor returns the index in a cursor of a report of total pairs. The empty text is the
// start.
func readDuplicatesCursor(of id.Batch, total int, text string) (next int, ok bool) {
	if text == "" {
		return 0, true
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) != duplicatesCursorBytes {
		return 0, false
	}
	next = int(binary.BigEndian.Uint32(b))
	return next, next < total && duplicatesCursor(of, total, next) == text
}

// ErrLost is returned when the lease of a block was lost, or its gallery or comparison is gone.
var ErrLost = errors.New("router: the block is no longer lent to this node")

// compared returns the gallery of a comparison. The error is ErrLost if it was deleted.
func (r *DuplicateRequests) compared(ctx context.Context, n shardfsm.JobName) (cluster.Gallery, error) {
	g, there, err := cluster.ConfirmedGallery(ctx, r.cluster, n.Gallery, n.Generation)
	if err == nil && !there {
		err = ErrLost
	}
	return g, err
}

// DuplicateRequests serves comparisons of galleries with themselves.
type DuplicateRequests struct {
	cluster *cluster.Cluster
	jobs    *bulk.JobRequests
}
