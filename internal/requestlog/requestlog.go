// Package requestlog carries a request's id to the log lines that are written on its
// behalf, on every node that works on it, and bounds lines that every request may cause.
// It imports golang.org/x/time and the standard library only.
package requestlog

import (
	"context"
	"log/slog"
	"strings"
)

// key is the name of the attribute in log lines, contextKey the key of the id in a
// context.
const key = "req"

// idMax is the most characters of an id.
const idMax = 64

type contextKey struct{}

// With returns a context whose log lines carry the id. It ignores an id that is
// empty, too long or has characters other than letters and digits, because the id
// may come from another node.
func With(ctx context.Context, id string) context.Context {
	if id == "" || len(id) > idMax || strings.ContainsFunc(id, isOther) {
		return ctx
	}
	return context.WithValue(ctx, contextKey{}, id)
}

func isOther(c rune) bool {
	return (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
}

// ID returns the id in ctx, or "".
func ID(ctx context.Context) string {
	id, _ := ctx.Value(contextKey{}).(string)
	return id
}

// Handler returns a handler that adds the request's id to records logged with its
// context.
func Handler(next slog.Handler) slog.Handler { return handler{next} }

type handler struct{ slog.Handler }

// Handle adds the id (slog.Handler).
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	if id := ID(ctx); id != "" {
		r.AddAttrs(slog.String(key, id))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs returns a handler that still adds the id (slog.Handler).
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs)}
}

// WithGroup returns a handler that still adds the id (slog.Handler).
func (h handler) WithGroup(name string) slog.Handler { return handler{h.Handler.WithGroup(name)} }
