package node

import (
	"context"
	"time"
)

const (
	// warmEvery is how often templates that came are opened: on a follower no search
	// does it. warmSoon is that until all were opened once.
	warmEvery, warmSoon = time.Second, 20 * time.Millisecond
	// warmPause is how long a node waits after templates that it can't open.
	warmPause = time.Minute
	// catchUpMost is for how long a node that has leaders waits for what they have
	// committed before it is ready: theirs may be the release that can't tell.
	catchUpMost = 5 * time.Second
)

// warm opens the templates of all replicas here, one after the other, as they come:
// a new leader answers its first search at once. The node is not ready before it has
// tried so with all that was committed when it began. Owned by Open; ends with Close.
func (n *Node) warm() {
	pause := time.NewTimer(warmSoon)
	defer pause.Stop()
	var since time.Time // all groups have leaders
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-pause.C:
		}
		all := false
		if !n.warmed.Load() && n.led() == nil && n.replicas.Complete() {
			if since.IsZero() {
				since = time.Now()
			}
			all = n.upToDate() || time.Since(since) > catchUpMost
		}
		failed := n.warmAll()
		if all {
			n.warmed.Store(true)
			n.noteReady()
		}
		switch warmed := n.warmed.Load(); {
		case failed && warmed:
			pause.Reset(warmPause)
		case failed || warmed:
			pause.Reset(warmEvery)
		default:
			pause.Reset(warmSoon)
		}
	}
}

// upToDate tells whether the replicas here have applied what their leaders have committed.
func (n *Node) upToDate() bool {
	ctx, cancel := context.WithTimeout(n.ctx, warmEvery)
	defer cancel()
	if n.router.SyncMeta(ctx) != nil {
		return false
	}
	for _, number := range n.replicas.Numbers() {
		if n.router.CatchUp(ctx, number) != nil {
			return false
		}
	}
	return true
}

// warmAll opens what is closed, and tells whether some of it can't be.
func (n *Node) warmAll() (failed bool) {
	for _, number := range n.replicas.Numbers() {
		if err := n.router.Warm(n.ctx, number); err != nil && n.ctx.Err() == nil {
			n.log.Warn("templates can't be opened", "group", number, "err", err)
			failed = true
		}
	}
	return failed
}
