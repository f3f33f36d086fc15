package httpapi

import (
	"bufio"
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"testing"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"facet/internal/must"
	"facet/internal/trace"
	"facet/node/transport"
)

// BenchmarkExtract measures what an extraction with an image of 300 KB costs
// outside the Service: TLS both ways, signature, hash, JSON, base64, answer.
func BenchmarkExtract(b *testing.B) {
	r := startOn(b, transport.OS{}, nil, nil)
	body := `{"faces":"` + base64.StdEncoding.EncodeToString([]byte("img alice"+strings.Repeat(" ", 300<<10))) + `"}`
	raw := signed{as: "biometric", method: "POST", target: "/v1.1/face/extract", body: body}.raw(b)
	c := r.dial()
	answers := bufio.NewReader(c)
	b.ReportAllocs()
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		exchange(b, c, answers, raw)
	}
}

// exchange sends a request and reads its answer.
func exchange(b *testing.B, to io.Writer, answers *bufio.Reader, raw string) {
	if _, err := io.WriteString(to, raw); err != nil {
		b.Fatal(err)
	}
	response, err := http.ReadResponse(answers, nil)
	must.Do(b, err)
	_, err = io.Copy(io.Discard, response.Body)
	if response.Body.Close() != nil || err != nil || response.StatusCode != http.StatusOK {
		b.Fatal(response.Status, err)
	}
}

// BenchmarkTraced measures what traces cost the smallest signed request: without a tracer, with one
// that samples no request, and with every request traced. The times of the last two over the first
// are the ratios.
func BenchmarkTraced(b *testing.B) {
	unsampled := sdk.NewTracerProvider(sdk.WithSampler(sdk.NeverSample()), sdk.WithBatcher(tracetest.NewNoopExporter()))
	sampled := sdk.NewTracerProvider(sdk.WithBatcher(tracetest.NewNoopExporter()))
	off := 0.
	for _, c := range []struct {
		name   string
		tracer *trace.Tracer
	}{{"off", nil}, {"unsampled", trace.NewTracer(unsampled.Tracer("bench"))}, {"sampled", trace.NewTracer(sampled.Tracer("bench"))}} {
		b.Run(c.name, func(b *testing.B) {
			r := start(b, func(cfg *Config) { cfg.Tracer = c.tracer })
			raw := signed{as: "biometric", method: "GET", target: "/v1.1/health"}.raw(b)
			conn := r.dial()
			answers := bufio.NewReader(conn)
			b.ReportAllocs()
			for b.Loop() {
				exchange(b, conn, answers, raw)
			}
			took := float64(b.Elapsed()) / float64(b.N)
			if off == 0 {
				off = took
			}
			b.ReportMetric(took/off, "times-off")
		})
	}
}
