package requestlog_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"

	"facet/internal/requestlog"
)

func TestALineCarriesItsRequestsID(t *testing.T) {
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
	f(func(_ context.Context, log *slog.Logger) { log.Warn("late") }, "level=WARN msg=late")
}
