package requestlog_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"facet/internal/requestlog"
)

func TestLineCarriesRequestID(t *testing.T) {
	t.Parallel()
	f := func(do func(ctx context.Context, log *slog.Logger), want string) {
		t.Helper()
		var out bytes.Buffer
		plain := slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}})
		do(requestlog.With(t.Context(), "4f"), slog.New(requestlog.Handler(plain)))
		if out.String() != want+"\n" {
			t.Errorf("got %q, want %q", out.String(), want)
		}
	}
	f(func(ctx context.Context, log *slog.Logger) { log.WarnContext(ctx, "late", "ms", 3) }, "level=WARN msg=late ms=3 req=4f")
	f(func(ctx context.Context, log *slog.Logger) { log.With("node", "n1").WarnContext(ctx, "late") }, "level=WARN msg=late node=n1 req=4f")
	f(func(_ context.Context, log *slog.Logger) { log.Warn("late") }, "level=WARN msg=late") //nolint:sloglint // a line of no request
}

func TestOnlyIDsAreCarried(t *testing.T) {
	t.Parallel()
	f := func(id, want string) {
		t.Helper()
		if got := requestlog.ID(requestlog.With(t.Context(), id)); got != want {
			t.Errorf("With(%q): got %q, want %q", id, got, want)
		}
	}
	f("0123456789abcdef0123456789abcdef", "0123456789abcdef0123456789abcdef")
	f("Zz9", "Zz9")
	f("", "")
	f("a b", "")
	f("a\nlevel=ERROR", "")
	f(strings.Repeat("a", 65), "")
	inner := requestlog.With(requestlog.With(t.Context(), "outer"), "")
	if got := requestlog.ID(inner); got != "outer" {
		t.Errorf("got %q, want what was there", got)
	}
}
