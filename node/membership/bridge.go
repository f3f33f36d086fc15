package membership

import (
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of the warnings about gossip.
const (
	warnInterval   = time.Minute // between two warnings about one source
	warnSourcesMax = 1000        // sources with warnings of their own
	// warnSweepInterval is the shortest time between two searches of a full table for
	// sources whose interval is over.
	warnSweepInterval = time.Second
	warnTopicMax      = 80 // bytes of the text that tells this node's own errors apart
)

// bridge receives memberlist's log. Its errors become warnings, because an
// unreachable node recovers by itself. All other lines are for debugging.
//
// Anyone who reaches the port can cause an error with a packet, so each source gets
// one warning in warnInterval. Sources for which the table has no room share one.
// The addresses of packets may be forged.
type bridge struct {
	log     *slog.Logger
	refused atomic.Uint64 // packets and streams

	mu      sync.Mutex // guards sources, rest and swept; held for arithmetic only
	sources map[string]*warned
	rest    warned // all sources that are not in the table
	swept   time.Time
}

// warned is the state of one source.
type warned struct {
	at   time.Time // of the last warning
	more int       // errors since then
}

func newBridge(log *slog.Logger) *bridge {
	return &bridge{log: log, sources: make(map[string]*warned)}
}

// Write takes one line: "date time [LEVEL] memberlist: text".
func (b *bridge) Write(line []byte) (int, error) {
	level, text, _ := strings.Cut(strings.TrimSpace(string(line)), " memberlist: ")
	if !strings.HasSuffix(level, "[ERR]") {
		b.log.Debug("gossip", "err", text)
		return len(line), nil
	}
	source, foreign := sourceOf(text)
	if foreign {
		b.refused.Add(1)
	}
	if more, ok := b.due(source, time.Now()); ok {
		b.log.Warn("gossip", "err", text, "more", more)
	}
	return len(line), nil
}

// sourceOf returns the host from which the cause of an error came. foreign is false
// for an error of this node's own calls; their source is what the error is about.
// memberlist writes "from=address" at the end, behind bytes that others may choose.
func sourceOf(text string) (source string, foreign bool) {
	if at := strings.LastIndex(text, "from="); at >= 0 {
		from, _, _ := strings.Cut(text[at+len("from="):], " ")
		if host, _, err := net.SplitHostPort(from); err == nil {
			from = host
		}
		return from, true
	}
	topic, _, _ := strings.Cut(text, ": ")
	return topic[:min(len(topic), warnTopicMax)], false
}

// due reports whether a warning about source is due, and counts the errors that had
// none since the source's last one.
func (b *bridge) due(source string, now time.Time) (more int, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.sources[source]
	if w == nil && len(b.sources) >= warnSourcesMax {
		b.sweep(now)
	}
	switch {
	case w != nil:
	case len(b.sources) < warnSourcesMax:
		w = &warned{}
		b.sources[source] = w
	default:
		w = &b.rest
	}
	if now.Sub(w.at) < warnInterval {
		w.more++
		return 0, false
	}
	more = w.more
	*w = warned{at: now}
	return more, true
}

// sweep removes the sources whose interval is over. The caller holds mu.
func (b *bridge) sweep(now time.Time) {
	if now.Sub(b.swept) < warnSweepInterval {
		return
	}
	b.swept = now
	for source, w := range b.sources {
		if now.Sub(w.at) >= warnInterval {
			delete(b.sources, source)
		}
	}
}
