// Package tracing sends the spans of sampled requests to a collector, by OpenTelemetry's protocol
// over HTTP (OTLP). It never delays a request: spans wait in a queue of 2,048, and a span that finds
// the queue full is dropped. OTEL_EXPORTER_OTLP_HEADERS, OTEL_EXPORTER_OTLP_CERTIFICATE and
// the other variables of the exporter count, too.
//
// It may import internal/id, internal/trace, OpenTelemetry's SDK and the standard library.
package tracing

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"facet/internal/id"
	"facet/internal/trace"
)

const (
	// RatioDefault is the default share of requests that are sampled.
	RatioDefault = .01
	// pathDefault is the path of a collector whose URL has none.
	pathDefault = "/v1/traces"
	// closeTimeout is how long Close waits for the last spans to be sent.
	closeTimeout = 2 * time.Second
	// complaintMax is the most bytes of an error in a warning: the collector's answer is in it.
	complaintMax = 300
	// complaintInterval is the shortest time between two warnings about the collector.
	complaintInterval = time.Minute
)

// Config configures Tracing.
type Config struct {
	URL           string  // of the collector: http://HOST:4318, or with a path of its own
	Ratio         float64 // the share of requests that are sampled, 0 to 1
	Node          id.Node
	Name, Version string // of the node and of the program
	Log           *slog.Logger
}

// Tracing exports spans.
type Tracing struct {
	provider *sdk.TracerProvider
	ratio    atomic.Pointer[sdk.Sampler]
}

// Open returns Tracing that exports to the collector; it makes no connection yet.
func Open(ctx context.Context, c Config) (*Tracing, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("the traces' collector %q is no URL like http://HOST:4318", c.URL)
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = pathDefault
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(u.String()))
	if err != nil {
		return nil, fmt.Errorf("open the traces' exporter: %w", err)
	}
	t := &Tracing{}
	t.SetRatio(c.Ratio)
	otel.SetErrorHandler(&complaints{log: c.Log})
	t.provider = sdk.NewTracerProvider(
		sdk.WithBatcher(exporter),
		// A peer has decided for its request; a client can't (trace.Tracer clears its sample).
		sdk.WithSampler(sdk.ParentBased(t, sdk.WithRemoteParentNotSampled(t))),
		sdk.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "facet"), attribute.String("service.version", c.Version),
			attribute.String("service.instance.id", c.Node.String()), attribute.String("host.name", c.Name),
		)),
	)
	return t, nil
}

// SetRatio sets the share of requests that are sampled from now on. It is safe for concurrent use.
func (t *Tracing) SetRatio(ratio float64) {
	s := sdk.TraceIDRatioBased(ratio)
	t.ratio.Store(&s)
}

// ShouldSample decides by chance (sdk.Sampler), not by the trace's id, which a client may have chosen.
func (t *Tracing) ShouldSample(p sdk.SamplingParameters) sdk.SamplingResult {
	_, _ = rand.Read(p.TraceID[:]) // it never fails
	return (*t.ratio.Load()).ShouldSample(p)
}

// Description describes the sampler (sdk.Sampler).
func (t *Tracing) Description() string { return (*t.ratio.Load()).Description() }

// Tracer returns the tracer of requests.
func (t *Tracing) Tracer() *trace.Tracer { return trace.NewTracer(t.provider.Tracer("facet")) }

// Close sends the last spans, for closeTimeout at most.
func (t *Tracing) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = t.provider.Shutdown(ctx) // a collector that is gone has been complained about
	return nil
}

// complaints logs the errors of the exporter, and not all of them.
type complaints struct {
	log  *slog.Logger
	last atomic.Int64 // of the last line, in nanoseconds since 1970
}

// Handle logs an error (otel.ErrorHandler).
func (c *complaints) Handle(err error) {
	now, last := time.Now().UnixNano(), c.last.Load()
	if now-last < int64(complaintInterval) || !c.last.CompareAndSwap(last, now) {
		return
	}
	c.log.Warn("spans of requests are not sent to the traces' collector; look at the setting traces-to",
		"err", fmt.Sprintf("%.*s", complaintMax, err.Error()))
}
