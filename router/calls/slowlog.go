package calls

import (
	"context"
	"log/slog"
	"time"

	"facet/internal/id"
	"facet/internal/trace"
)

// slowHelp is how long a peer's request may take before it is logged as a warning.
// The client has waited at least as long.
const slowHelp = time.Second

// logAnswered logs a request that this node has carried out for a peer. ctx
// contains the id of the client's request. Under overload it leaves lines out.
func (c *Caller) logAnswered(ctx context.Context, method string, group id.Shard, took time.Duration, stages *trace.Request, err error) {
	level, message := slog.LevelDebug, "peer answered"
	var omitted []any
	if took >= slowHelp {
		var ok bool
		if omitted, ok = c.slowLines.Next(); !ok {
			return
		}
		level, message = slog.LevelWarn, "slow answer to a peer"
	}
	if !c.log.Enabled(ctx, level) {
		return
	}
	line := []any{"method", method, "group", group, "ms", took.Milliseconds(), "stages", stages.Stages(took)}
	if err != nil {
		line = append(line, "err", err)
	}
	//nolint:sloglint // both messages are constants, and the pairs are above
	c.log.Log(ctx, level, message, append(line, omitted...)...)
}
