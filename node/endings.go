package node

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

const (
	// certificateLate is how long before a certificate's end the log says so as an error.
	certificateLate = 3 * 24 * time.Hour
	// endingsPause is how often it is looked, endingsRest how often the same is said.
	endingsPause = time.Hour
	endingsRest  = 24 * time.Hour
)

// ending is a certificate's.
type ending struct {
	what string
	at   time.Time
}

// endings gives the ends of what this node and others trust each other by.
func (c *Credentials) endings() []ending {
	list := []ending{
		{"its certificate", c.NodeEnds}, {"its certificate for clients", c.ServerEnds}, {"the authority that it trusts", c.AuthorityEnds},
	}
	if !c.StatusEnds.IsZero() {
		list = append(list, ending{"the certificate for facet status on its machine", c.StatusEnds})
	}
	return list
}

// soon tells whether the end is near enough to be warned of.
func (e ending) soon(now time.Time) bool { return e.at.Sub(now) < certificateSoon }

// in says in words what ends, and when.
func (e ending) in(now time.Time) string {
	return fmt.Sprintf("%s ends on %s, in %d days", e.what, e.at.Format(time.DateOnly), int(e.at.Sub(now).Hours()/24))
}

// watchEndings logs each day what ends soon: the authority's key is the operators' and
// never on a node, so a node can't have its certificates renewed by itself. It ends with
// ctx.
func (n *Node) watchEndings(ctx context.Context) {
	for {
		rest := endingsPause
		if n.warnOfEndings(ctx, time.Now()) {
			rest = endingsRest
		}
		if pause(ctx, rest) != nil {
			return
		}
	}
}

// warnOfEndings logs what ends soon, and tells whether there was anything.
func (n *Node) warnOfEndings(ctx context.Context, now time.Time) (warned bool) {
	for _, e := range n.credentials().endings() {
		if !e.soon(now) {
			continue
		}
		level := slog.LevelWarn
		if e.at.Sub(now) < certificateLate {
			level = slog.LevelError
		}
		n.log.Log(ctx, level, "renew the certificates: facet cluster renew, where the authority is", "why", e.in(now))
		warned = true
	}
	return warned
}
