package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/valyala/fasthttp"

	"facet/router"
)

// slowRequest is how long a request may take before it is logged. The models take
// tens of milliseconds, a search takes less, and a new leader is elected within two
// seconds.
const slowRequest = time.Second

// Meter gets the outcome of each request. Observe must be quick.
type Meter interface {
	Answered(Outcome)
}

// Outcome describes how a request ended. It contains nothing about the client or
// the data.
type Outcome struct {
	// Operation is the method and the path pattern of the interface, with names in
	// braces. It is empty for an unknown operation.
	Operation string
	Status    int
	Took      time.Duration
	// BodyBytes is the length of the body, as announced or read, AnswerBytes that of the answer.
	BodyBytes, AnswerBytes int
	// Refusal is one of the Refused constants for 429 and 5xx, else empty.
	Refusal string
}

// Reasons of refusals, for metrics.
const (
	RefusedRate        = "rate"        // a tenant's or application's rate is too high
	RefusedQuota       = "quota"       // a quota of the tenant is used up
	RefusedSignatures  = "signatures"  // too many wrong signatures of an access key from an address
	RefusedBodies      = "bodies"      // bodies take all memory that they may
	RefusedBusy        = "busy"        // a queue or limit of the service is full
	RefusedUnavailable = "unavailable" // a group has no leader
	RefusedMemory      = "memory"      // there is no memory for more events
	RefusedTimeout     = "timeout"
	RefusedFault       = "fault"
)

// Refusals are all reasons of refusals.
var Refusals = []string{
	RefusedRate, RefusedQuota, RefusedSignatures, RefusedBodies, RefusedBusy, RefusedUnavailable, RefusedMemory, RefusedTimeout, RefusedFault,
}

// refusalOf returns why a request got f, if f is a refusal.
func refusalOf(err error, f *failure) string {
	kind := router.KindOf(err)
	switch {
	case f.status != fasthttp.StatusTooManyRequests && f.status < 500:
		return ""
	case f.body.Reason == reasonRateLimit:
		return RefusedRate
	case f.body.Reason == reasonQuota:
		return RefusedQuota
	case f.body.Reason == reasonSignatures:
		return RefusedSignatures
	case kind == router.Busy:
		return RefusedBusy
	case kind == router.Insufficient:
		return RefusedMemory
	case kind == router.Unavailable:
		return RefusedUnavailable
	case kind == router.Timeout, errors.Is(err, context.DeadlineExceeded):
		return RefusedTimeout
	case f.status == fasthttp.StatusTooManyRequests:
		return RefusedBodies
	default:
		return RefusedFault
	}
}

// name returns the operation for metrics and logs. A nil operation has the empty
// name.
func (o *operation) name() string {
	if o == nil {
		return ""
	}
	return o.method + " " + o.pattern
}

// observe counts a request that was answered and logs it when it was slow. Under overload it leaves lines out.
func (s *Server) observe(rc *fasthttp.RequestCtx, c *call) {
	took, status := time.Since(c.began), rc.Response.StatusCode()
	if s.cfg.Meter != nil {
		s.cfg.Meter.Answered(Outcome{
			Operation: c.op.name(), Status: status, Took: took,
			BodyBytes: c.length, AnswerBytes: len(rc.Response.Body()), Refusal: c.refusal,
		})
	}
	c.stages.End(status, status >= fasthttp.StatusInternalServerError)
	level, message := slog.LevelDebug, "request answered"
	var omitted []any
	if took >= s.slow {
		var ok bool
		if omitted, ok = s.slowLines.Next(); !ok {
			return
		}
		level, message = slog.LevelWarn, "slow request"
	}
	if ctx := context.Background(); s.cfg.Log.Enabled(ctx, level) {
		line := []any{"req", c.requestID, "operation", c.op.name(), "status", status, "ms", took.Milliseconds(), "stages", c.stages.Stages(took)}
		//nolint:sloglint // both messages are constants, and the pairs are above
		s.cfg.Log.Log(ctx, level, message, append(line, omitted...)...)
	}
}

// Load reports what a Server is busy with.
type Load struct {
	InFlight, Connections int
	// BodyMost is the highest value that BodyBytes ever had.
	BodyBytes, BodyMost, BodyLimit int64
}

// Load returns the present load.
func (s *Server) Load() Load {
	l := Load{InFlight: int(s.inFlight.Load()), BodyBytes: s.bodies.Used(), BodyMost: s.bodies.Most(), BodyLimit: s.bodies.Max()}
	s.mu.Lock()
	ln := s.listener
	s.mu.Unlock()
	if ln != nil {
		l.Connections = ln.Open()
	}
	return l
}
