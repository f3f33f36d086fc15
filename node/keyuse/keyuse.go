// Package keyuse notes when the access keys that sign requests here were used last.
//
// The package may import router and node/loop.
package keyuse

import (
	"context"
	"maps"
	"sync"
	"time"

	"facet/node/loop"
)

const (
	// interval is how often a node reports uses. A key's first use for a while is known that soon.
	interval = 30 * time.Second
	// again is how long a reported use of a key stands for later ones: a busy key costs the
	// cluster's log an entry each quarter of an hour and node.
	again   = 15 * time.Minute
	timeout = 10 * time.Second
	// most bounds the keys that are remembered. More are forgotten early, and reported more often.
	most = 10_000
)

// Keys notes uses of access keys for the cluster (routing.Router).
type Keys interface {
	NoteKeyUses(ctx context.Context, uses map[string]time.Time) error
}

// Reporter reports uses. It is safe for concurrent use.
type Reporter struct {
	*loop.Loop
	keys Keys

	mu       sync.Mutex           // guards all below; held for map accesses only
	used     map[string]time.Time // since the last report
	reported map[string]time.Time
}

// New returns a Reporter; Run does its work.
func New(keys Keys) *Reporter {
	return &Reporter{Loop: loop.New("uses of keys"), keys: keys, used: map[string]time.Time{}, reported: map[string]time.Time{}}
}

// Used notes that a request with an access key came now.
func (r *Reporter) Used(accessKey string) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.reported[accessKey]) >= again && len(r.used) < most {
		r.used[accessKey] = now
	}
}

// Run reports uses until ctx ends.
func (r *Reporter) Run(ctx context.Context) { r.Every(ctx, interval, r.Report) }

// Report reports the uses since the last report.
func (r *Reporter) Report(ctx context.Context) error {
	uses := r.take()
	if len(uses) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := r.keys.NoteKeyUses(ctx, uses)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		maps.Copy(uses, r.used) // newer ones stay
		r.used = uses
		return err
	}
	maps.DeleteFunc(r.reported, func(_ string, at time.Time) bool { return time.Since(at) >= again })
	if len(r.reported)+len(uses) > most {
		clear(r.reported)
	}
	maps.Copy(r.reported, uses)
	return nil
}

// take returns the uses since the last report, and forgets them.
func (r *Reporter) take() map[string]time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	uses := r.used
	r.used = map[string]time.Time{}
	return uses
}
