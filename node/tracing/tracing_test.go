package tracing_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"facet/internal/must"
	"facet/internal/trace"
	"facet/node/tracing"
)

// A client chooses the id of its trace, by which samplers usually decide.
func TestIDOfClientOrdersNoSample(t *testing.T) {
	t.Parallel()
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer collector.Close()
	tr, err := tracing.Open(t.Context(), tracing.Config{URL: collector.URL, Ratio: .05, Log: slog.New(slog.DiscardHandler)})
	must.Do(t, err)
	defer tr.Close()
	tracer := tr.Tracer()
	const requests = 1000
	for _, digit := range []string{"0", "f"} {
		sampled := 0
		for range requests {
			ctx, r := trace.New(t.Context())
			parent := "00-1" + strings.Repeat(digit, 31) + "-b7ad6b7169203331-00"
			if trace.Parent(tracer.Sample(ctx, trace.Beginning{Name: "GET /x", Parent: parent})) != "" {
				sampled++
			}
			r.End(200, false)
		}
		if sampled == 0 || sampled > requests/5 { // 50 on the average
			t.Errorf("%d of %d requests with an id of %s are sampled, want about one in 20", sampled, requests, digit)
		}
	}
}

func TestAnswerOfCollectorIsCutInLog(t *testing.T) {
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, strings.Repeat("no ", 100_000), http.StatusBadRequest)
	}))
	defer collector.Close()
	var log bytes.Buffer
	tr, err := tracing.Open(t.Context(), tracing.Config{URL: collector.URL, Ratio: 1, Log: slog.New(slog.NewTextHandler(&log, nil))})
	must.Do(t, err)
	ctx, r := trace.New(t.Context())
	tr.Tracer().Sample(ctx, trace.Beginning{Name: "GET /x"})
	r.End(200, false)
	if err := tr.Close(); err != nil {
		t.Error(err)
	}
	if text := log.String(); !strings.Contains(text, "traces-to") || !strings.Contains(text, "400") || len(text) > 1000 {
		t.Errorf("%d bytes: %.2000s", len(text), text)
	}
}
