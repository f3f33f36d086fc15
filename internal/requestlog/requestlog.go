// Package requestlog carries a request's id to the log lines that are written on its
// behalf, on every node that works on it. It imports the standard library only.
package requestlog

import (
	"context"
	"log/slog"
	"strings"
)

// key is the attribute, and contextKey what the id lies under.
const key = "req"

// idMax bounds an id.
const idMax = 64

type contextKey struct{}

// With gives a context whose log lines carry the id. One that is empty, too long or has
// other characters than letters and digits is no id: it may come from another node.
func With(ctx context.Context, id string) context.Context {
	if id == "" || len(id) > idMax || strings.ContainsFunc(id, isOther) {
		return ctx
	}
	return context.WithValue(ctx, contextKey{}, id)
}

func isOther(c rune) bool {
	return (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
}

// ID gives the id that ctx carries, or "".
func ID(ctx context.Context) string {
	id, _ := ctx.Value(contextKey{}).(string)
	return id
}

// Handler adds the request's id to records that come with its context.
func Handler(next slog.Handler) slog.Handler { return handler{next} }

type handler struct{ slog.Handler }

// Handle adds the id (slog.Handler).
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	if id := ID(ctx); id != "" {
		r.AddAttrs(slog.String(key, id))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs keeps what Handle adds (slog.Handler).
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs)}
}

// WithGroup keeps what Handle adds (slog.Handler).
func (h handler) WithGroup(name string) slog.Handler { return handler{h.Handler.WithGroup(name)} }
