package node

import (
	"context"
	"time"
)

// WarnOfEndings logs what ends soon after now.
func (n *Node) WarnOfEndings(ctx context.Context, now time.Time) bool {
	return n.warnOfEndings(ctx, now)
}
