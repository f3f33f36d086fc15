// Package trace times the stages of a client's request, on each node that works on it.
//
// A node notes a few stages of every request: their names, beginnings and durations. They explain
// a slow request in its line of the log. Of a sampled request, each stage is also a span of
// OpenTelemetry, and the nodes that are called continue the trace. Without a sample a stage
// costs two readings of the clock and an entry in a list.
//
// It may import internal/id, the interface (not the SDK) of OpenTelemetry and the standard library.
package trace

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"facet/internal/id"
)

const (
	// stagesMax is the most stages that are kept of a request, the longest ones. A search of 64
	// shards with retries has more.
	stagesMax = 64
	// stagesRoom is the number of stages that most requests have, at most.
	stagesRoom = 16
	// shownMax is the most stages in a line of the log.
	shownMax = 6
	// ParentMax is the most bytes of a traceparent (W3C Trace Context).
	ParentMax = 64
)

// Names of stages.
const (
	Body     = "body"         // the body of the request arrives
	Key      = "access key"   // the access key is looked up
	APIKey   = "API key"      // the API key is looked up
	Parse    = "parse"        // JSON and base64 of the body are read
	Queue    = "engine queue" // an image waits for a worker of the engine
	Models   = "models"       // an image becomes faces
	Decode   = "decode"       // a part of Models: an image file becomes pixels
	Find     = "find faces"   // a part of Models: the models run
	Call     = "call"         // a member of a group answers a request
	NoLeader = "no leader"    // a group has no leader that answers
	Proof    = "proof"        // the leader of a group proves that it leads
	CatchUp  = "catch up"     // a replica applies what the leader had committed
	Scan     = "scan"         // a shard's templates are compared with a probe
	Commit   = "commit"       // a command is committed and applied
	Audit    = "audit"        // the record of the request becomes durable
)

// Stage is a part of the work on a request. Group, Member and Method are set where they tell more.
// More is the number of further groups.
type Stage struct {
	Name   string
	Group  id.Shard
	More   int
	Member id.Member
	Method string
}

// String returns the stage in words.
func (s Stage) String() string {
	text := s.Name
	if s.Method != "" {
		text += " " + s.Method
	}
	if s.Group != 0 || s.Method != "" {
		text += " of group " + strconv.Itoa(int(s.Group))
	}
	if s.More > 0 {
		text += " and " + strconv.Itoa(s.More) + " more"
	}
	if s.Member != "" {
		text += " at " + string(s.Member)
	}
	return text
}

// Tracer samples requests. A nil Tracer samples none.
type Tracer struct{ spans trace.Tracer }

// NewTracer returns a Tracer that makes spans.
func NewTracer(spans trace.Tracer) *Tracer { return &Tracer{spans} }

// Request has the stages of one request on this node. A nil Request has none.
type Request struct {
	spans trace.Tracer // nil unless the request is sampled
	root  trace.Span

	mu     sync.Mutex // guards stages
	stages []timed
}

type timed struct {
	Stage
	began time.Time
	took  time.Duration
	err   bool
}

type contextKey struct{}

// New returns a context whose stages are those of a new request.
func New(ctx context.Context) (context.Context, *Request) {
	r := &Request{stages: make([]timed, 0, stagesRoom)}
	return context.WithValue(ctx, contextKey{}, r), r
}

// In returns a context whose stages are those of r.
func (r *Request) In(ctx context.Context) context.Context {
	return context.WithValue(ctx, contextKey{}, r)
}

// Beginning describes the beginning of a request on a node.
type Beginning struct {
	Name   string    // of the operation or method
	ID     string    // of the client's request
	Parent string    // traceparent of the caller, or ""
	Peer   bool      // the caller is a node of this cluster; its decision to sample counts
	At     time.Time // when it began
}

// Sample decides whether ctx's request is sampled. If it is, the stages that follow in the context
// are spans, and so are those that have ended. Clients may continue their trace, but can't order a
// sample. Sample is called before the request's stages run at once.
func (t *Tracer) Sample(ctx context.Context, b Beginning) context.Context {
	r := of(ctx)
	if t == nil || r == nil {
		return ctx
	}
	if len(b.Parent) > ParentMax {
		b.Parent = ""
	}
	outer := propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{parentHeader: b.Parent})
	if parent := trace.SpanContextFromContext(outer); parent.IsValid() && !b.Peer {
		outer = trace.ContextWithRemoteSpanContext(ctx, parent.WithTraceFlags(parent.TraceFlags().WithSampled(false)))
	}
	outer, span := t.spans.Start(outer, b.Name, trace.WithTimestamp(b.At), trace.WithSpanKind(trace.SpanKindServer))
	if !span.IsRecording() {
		return ctx
	}
	span.SetAttributes(attribute.String("facet.request", b.ID))
	r.spans, r.root = t.spans, span
	for _, s := range r.stages {
		_, earlier := r.span(outer, s.Stage, s.began)
		end(earlier, s.err, s.began.Add(s.took))
	}
	return outer
}

const parentHeader = "traceparent"

// Parent returns the traceparent for a request to another node, or "" if ctx belongs to no
// sampled request.
func Parent(ctx context.Context) string {
	if r := of(ctx); r == nil || r.spans == nil {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier[parentHeader]
}

func of(ctx context.Context) *Request {
	r, _ := ctx.Value(contextKey{}).(*Request)
	return r
}

// Running is a stage that runs. Its zero value belongs to no request.
type Running struct {
	stage   Stage
	request *Request
	span    trace.Span // nil unless sampled
	began   time.Time
}

// Start starts a stage of ctx's request. The context is for what the stage itself waits for.
func Start(ctx context.Context, s Stage) (context.Context, Running) {
	r := of(ctx)
	if r == nil {
		return ctx, Running{}
	}
	running := Running{stage: s, request: r, began: time.Now()}
	if r.spans != nil {
		ctx, running.span = r.span(ctx, s, running.began)
	}
	return ctx, running
}

func (r *Request) span(ctx context.Context, s Stage, began time.Time) (context.Context, trace.Span) {
	kind := trace.SpanKindInternal
	if s.Name == Call {
		kind = trace.SpanKindClient
	}
	return r.spans.Start(ctx, s.Name, trace.WithTimestamp(began), trace.WithSpanKind(kind), trace.WithAttributes(s.attributes()...))
}

func (s Stage) attributes() (list []attribute.KeyValue) {
	if s.Method != "" {
		list = append(list, attribute.String("facet.method", s.Method))
	}
	if s.Group != 0 || s.Method != "" {
		list = append(list, attribute.Int("facet.group", int(s.Group)))
	}
	if s.More > 0 {
		list = append(list, attribute.Int("facet.groups", s.More+1))
	}
	if s.Member != "" {
		list = append(list, attribute.String("facet.member", string(s.Member)))
	}
	return list
}

// End ends the stage. A span says of an error that there was one, not which: its text may name what
// collectors should not know.
func (r Running) End(err error) {
	if r.request == nil {
		return
	}
	now := time.Now()
	if r.span != nil {
		end(r.span, err != nil, now)
	}
	r.request.add(timed{r.stage, r.began, now.Sub(r.began), err != nil})
}

func end(span trace.Span, failed bool, at time.Time) {
	if failed {
		span.SetStatus(codes.Error, "")
	}
	span.End(trace.WithTimestamp(at))
}

func (r *Request) add(t timed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.stages) < stagesMax {
		r.stages = append(r.stages, t)
		return
	}
	shortest := 0
	for i := range r.stages {
		if r.stages[i].took < r.stages[shortest].took {
			shortest = i
		}
	}
	if r.stages[shortest].took < t.took {
		r.stages[shortest] = t
	}
}

// End ends the request's own span. status is that of HTTP, or 0.
func (r *Request) End(status int, failed bool) {
	if r == nil || r.spans == nil {
		return
	}
	if status != 0 {
		r.root.SetAttributes(attribute.Int("http.response.status_code", status))
	}
	end(r.root, failed, time.Now())
}

// Stages returns the request's longest stages in words, the longest first. A stage of less than a
// hundredth of the request's time is left out. Stages overlap where one is a part of
// another, or where several run at once.
func (r *Request) Stages(took time.Duration) string {
	if r == nil {
		return ""
	}
	r.mu.Lock()
	list := slices.Clone(r.stages)
	r.mu.Unlock()
	list = slices.DeleteFunc(list, func(t timed) bool { return t.took < took/100 })
	slices.SortStableFunc(list, func(a, b timed) int { return cmp.Compare(b.took, a.took) })
	var text []string
	for _, t := range list[:min(len(list), shownMax)] {
		text = append(text, t.String()+" "+strconv.FormatInt(t.took.Milliseconds(), 10)+" ms")
	}
	if more := len(list) - shownMax; more > 0 {
		text = append(text, strconv.Itoa(more)+" more")
	}
	return strings.Join(text, ", ")
}
