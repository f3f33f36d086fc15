// Package requestlog carries a request's id to the log lines that are written on its
// behalf. It imports the standard library only.
package requestlog

import (
	"context"
	"log/slog"
)

// key is the attribute, and contextKey what the id lies under.
const key = "req"

type contextKey struct{}

// With gives a context whose log lines carry the id.
func With(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, contextKey{}, id)
}

// Handler adds the request's id to records that come with its context.
func Handler(next slog.Handler) slog.Handler { return handler{next} }

type handler struct{ slog.Handler }

// Handle adds the id (slog.Handler).
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	if id, ok := ctx.Value(contextKey{}).(string); ok {
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
