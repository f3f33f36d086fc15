package ledger

import (
	"context"
	"fmt"
	"net/http"

	"golang.org/x/mod/sumdb/tlog"

	"facet/internal/tiles"
	"facet/node/audit/entry"
	"facet/scripts/chaos/traffic"
)

// log is a tenant's log as its auditor reads it.
type log struct {
	records []*entry.Record
	stored  hashes
}

// hashes are the stored hashes of a tree (tlog.HashReader).
type hashes []tlog.Hash

// ReadHashes returns the hashes with these indices.
func (h hashes) ReadHashes(indices []int64) (list []tlog.Hash, err error) {
	for _, i := range indices {
		list = append(list, h[i])
	}
	return list, nil
}

// append adds a record's content to the log.
func (l *log) append(content []byte) error {
	r, err := entry.Decode(content)
	if err != nil {
		return fmt.Errorf("record %d: %w", len(l.records), err)
	}
	more, err := tlog.StoredHashes(int64(len(l.records)), content, l.stored)
	if err != nil {
		return err
	}
	l.records, l.stored = append(l.records, r), append(l.stored, more...)
	return nil
}

// contains returns an error unless the log's first records have a checkpoint's hash.
func (l *log) contains(c tiles.Checkpoint) error {
	if c.N > int64(len(l.records)) {
		return fmt.Errorf("the log had %d records, and has %d now", c.N, len(l.records))
	}
	root, err := tlog.TreeHash(c.N, l.stored)
	if err == nil && root != c.Hash {
		err = fmt.Errorf("the log's first %d records have another hash than when it had so many", c.N)
	}
	return err
}

// read adds the records that the log has since to l, and compares it with the signed checkpoint.
func (l *Ledger) read(ctx context.Context, to *log) error {
	get := func(path string) ([]byte, error) {
		a, err := traffic.Insist(ctx, l.auditor, len(to.records), traffic.Request{Method: http.MethodGet, Target: "/api/audit/" + path})
		if err == nil && a.Status != http.StatusOK {
			err = fmt.Errorf("read the audit log, %s: %d %s", path, a.Status, a.Body)
		}
		return a.Body, err
	}
	signed, err := get("checkpoint")
	if err != nil {
		return err
	}
	if l.key == "" {
		return fmt.Errorf("no node gave a checkpoint before the end")
	}
	c, _, err := tiles.Open(signed, l.key)
	if err != nil {
		return err
	}
	for n := int64(len(to.records)); n < c.N; n = int64(len(to.records)) {
		bundle := tiles.In(tiles.EntryLevel, n/tiles.Width, c.N)
		raw, err := get(tiles.Path(bundle))
		if err != nil {
			return err
		}
		contents, err := tiles.Entries(raw, bundle.W)
		if err != nil {
			return err
		}
		for _, content := range contents[n%tiles.Width:] {
			if err := to.append(content); err != nil {
				return err
			}
		}
	}
	return to.contains(c)
}
