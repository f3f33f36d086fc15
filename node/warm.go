package node

import (
	"time"
)

const (
	// warmEvery is how often templates that came are opened: on a follower no search
	// does it.
	warmEvery = time.Second
	// warmPause is how long a node waits after templates that it can't open.
	warmPause = time.Minute
)

// warm opens the templates of all replicas here, one after the other, as they come:
// a new leader answers its first search at once. Owned by Open; ends with Close.
func (n *Node) warm() {
	pause := time.NewTimer(warmEvery)
	defer pause.Stop()
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-pause.C:
		}
		next := warmEvery
		for _, number := range n.groups.numbers() {
			if err := n.router.Warm(n.ctx, number); err != nil && n.ctx.Err() == nil {
				n.log.Warn("templates can't be opened", "group", number, "err", err)
				next = warmPause
			}
		}
		pause.Reset(next)
	}
}
