package trace_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"facet/internal/trace"
)

func TestStagesAreToldLongestFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx, r := trace.New(t.Context())
		stage := func(s trace.Stage, took time.Duration) {
			_, running := trace.Start(ctx, s)
			time.Sleep(took)
			running.End(nil)
		}
		stage(trace.Stage{Name: trace.Key}, time.Millisecond) // less than a hundredth
		stage(trace.Stage{Name: trace.Queue}, 300*time.Millisecond)
		stage(trace.Stage{Name: trace.Call, Method: "shard.search", Group: 7, Member: "abc.1"}, 2*time.Second)
		stage(trace.Stage{Name: trace.Call, Method: "meta.index"}, 40*time.Millisecond)
		want := "call shard.search of group 7 at abc.1 2000 ms, engine queue 300 ms, call meta.index of group 0 40 ms"
		if got := r.Stages(time.Since(began)); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

// A search of 64 shards has more stages than are kept. The one that matters is kept.
func TestLongestStageIsKeptAmongMany(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, r := trace.New(t.Context())
		var work sync.WaitGroup
		for i := range 500 {
			work.Go(func() {
				_, running := trace.Start(ctx, trace.Stage{Name: trace.Scan, Group: 1})
				took := 10 * time.Millisecond
				if i == 250 {
					took = time.Second
				}
				time.Sleep(took)
				running.End(nil)
			})
		}
		work.Wait()
		if got := r.Stages(time.Second); !strings.HasPrefix(got, "scan of group 1 1000 ms, ") || !strings.HasSuffix(got, "58 more") {
			t.Errorf("got %s", got)
		}
	})
}

// client is a caller's traceparent, sampled.
const client = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// spansOf returns the spans of a request with two stages, of which the first ended before the
// sample.
func spansOf(t *testing.T, sampler sdk.Sampler, b trace.Beginning) (spans tracetest.SpanStubs, parent string) {
	t.Helper()
	out := tracetest.NewInMemoryExporter()
	p := sdk.NewTracerProvider(sdk.WithSyncer(out), sdk.WithSampler(sdk.ParentBased(sampler, sdk.WithRemoteParentNotSampled(sampler))))
	tracer := trace.NewTracer(p.Tracer("test"))
	ctx, r := trace.New(t.Context())
	_, early := trace.Start(ctx, trace.Stage{Name: trace.Body})
	early.End(nil)
	b.At = time.Now().Add(-time.Second)
	ctx = tracer.Sample(ctx, b)
	inner, running := trace.Start(ctx, trace.Stage{Name: trace.Call, Method: "shard.search", Group: 3, Member: "m"})
	parent = trace.Parent(inner)
	running.End(errors.New("secret words"))
	r.End(200, false)
	return out.GetSpans(), parent
}

func TestSampledRequestHasSpanForEachStage(t *testing.T) {
	t.Parallel()
	spans, parent := spansOf(t, sdk.AlwaysSample(), trace.Beginning{Name: "POST /x", ID: "4f"})
	if len(spans) != 3 {
		t.Fatalf("got %d spans, want 3", len(spans))
	}
	body, call, root := spans[0], spans[1], spans[2]
	if body.Name != "body" || call.Name != "call" || root.Name != "POST /x" {
		t.Errorf("got spans %s, %s, %s", body.Name, call.Name, root.Name)
	}
	for _, s := range spans[:2] {
		if s.Parent.SpanID() != root.SpanContext.SpanID() {
			t.Errorf("%s is no part of the request", s.Name)
		}
	}
	if root.EndTime.Sub(root.StartTime) < time.Second {
		t.Error("the request began when it was sampled")
	}
	if !strings.Contains(parent, call.SpanContext.SpanID().String()) {
		t.Errorf("peers continue %s, want the call's span %s", parent, call.SpanContext.SpanID())
	}
	for _, s := range spans {
		if strings.Contains(s.Status.Description, "secret") || len(s.Events) > 0 {
			t.Errorf("%s tells the error", s.Name)
		}
	}
}

func TestOnlyPeersOrderSamples(t *testing.T) {
	t.Parallel()
	f := func(what string, sampler sdk.Sampler, b trace.Beginning, want int, continues bool) {
		t.Helper()
		spans, parent := spansOf(t, sampler, b)
		if len(spans) != want || (parent != "") != (want > 0) {
			t.Fatalf("%s: %d spans, peers get %q", what, len(spans), parent)
		}
		if want > 0 && continues != (spans[0].SpanContext.TraceID().String() == client[3:35]) {
			t.Errorf("%s: the trace is %s", what, spans[0].SpanContext.TraceID())
		}
	}
	f("client, sampled there", sdk.NeverSample(), trace.Beginning{Parent: client}, 0, false)
	f("client, sampled here", sdk.AlwaysSample(), trace.Beginning{Parent: client}, 3, true)
	f("peer", sdk.NeverSample(), trace.Beginning{Parent: client, Peer: true}, 3, true)
	f("no trace", sdk.AlwaysSample(), trace.Beginning{}, 3, false)
	f("garbage", sdk.AlwaysSample(), trace.Beginning{Parent: "00-zz"}, 3, false)
	f("too long", sdk.AlwaysSample(), trace.Beginning{Parent: client + strings.Repeat("-", 100)}, 3, false)
}

func TestStageOutsideOfRequestIsNothing(t *testing.T) {
	t.Parallel()
	ctx, running := trace.Start(t.Context(), trace.Stage{Name: trace.Scan})
	running.End(nil)
	if ctx != t.Context() || trace.Parent(ctx) != "" {
		t.Error("a stage of no request has changed its context")
	}
	var tracer *trace.Tracer
	ctx, r := trace.New(ctx)
	if tracer.Sample(ctx, trace.Beginning{}) != ctx {
		t.Error("no tracer has sampled")
	}
	r.End(200, false)
	var none *trace.Request
	none.End(200, false)
	if none.Stages(time.Second) != "" {
		t.Error("no request has stages")
	}
}
