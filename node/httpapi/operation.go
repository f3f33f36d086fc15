package httpapi

import (
	"context"

	"github.com/valyala/fasthttp"

	"facet/internal/trace"
)

// handler serves the requests of an operation. Only reads, changes and unaudited make one, so that none is without
// a decision on what the audit records of its requests say.
type handler struct {
	serve func(ctx context.Context, c *call) (answer, error)
}

// says is what the audit records of an operation's requests say beside their head (see call.event). A nil function
// adds nothing.
type says[Q, A any] struct {
	// asked adds what a request asks for, which is all that the record of an intent has. Of a bad request q has the
	// part that was read.
	asked func(t *trail, q Q)
	// told adds the outcome, also one beside an error.
	told func(t *trail, q Q, a A)
}

// reads returns the handler of an operation that changes nothing that lasts. read reads a request, do carries it
// out, and show returns the answer.
func reads[Q, A any](
	read func(context.Context, *call) (Q, error), do func(context.Context, *call, Reader, Q) (A, error), show func(*call, Q, A) answer,
	s says[Q, A],
) handler {
	return steps(read, func(ctx context.Context, c *call, q Q) (A, error) { return do(ctx, c, c.service, q) }, show, s)
}

// changes returns the handler of a write. do gets the Writer when the intent is recorded, with the salts of the
// subjects: afterwards they may be gone.
func changes[Q, A any](
	read func(context.Context, *call) (Q, error), do func(context.Context, *call, Writer, Q) (A, error), show func(*call, Q, A) answer,
	s says[Q, A],
) handler {
	return steps(read, func(ctx context.Context, c *call, q Q) (a A, err error) {
		if err := c.lookUp(ctx); err != nil {
			return a, err
		}
		if err := c.intent(); err != nil {
			return a, err
		}
		return do(ctx, c, c.server.cfg.Service, q)
	}, show, s)
}

// unaudited returns the handler of an operation whose requests have no records of their own.
func unaudited(serve func(ctx context.Context, c *call) (answer, error)) handler {
	return handler{serve}
}

func steps[Q, A any](
	read func(context.Context, *call) (Q, error), do func(context.Context, *call, Q) (A, error), show func(*call, Q, A) answer, s says[Q, A],
) handler {
	return handler{func(ctx context.Context, c *call) (answer, error) {
		q, err := read(ctx, c)
		if s.asked != nil {
			s.asked(&c.trail, q)
			c.hashPhotos()
		}
		if err != nil {
			return answer{}, err
		}
		a, err := do(ctx, c, q)
		if s.told != nil {
			s.told(&c.trail, q, a)
			c.hashPhotos()
		}
		if err != nil {
			return answer{}, err
		}
		return show(c, q, a), nil
	}}
}

// nothing stands for a request that asks for no more than its path, and for an answer without a body.
type nothing struct{}

// readsNothing is the first step of an operation whose path says all.
func readsNothing(context.Context, *call) (nothing, error) { return nothing{}, nil }

// by makes a step of a method that takes no more than the request.
func by[S, Q, A any](method func(S, context.Context, Q) (A, error)) func(context.Context, *call, S, Q) (A, error) {
	return func(ctx context.Context, _ *call, service S, q Q) (A, error) { return method(service, ctx, q) }
}

// shows makes the last step of an operation whose answer is OK, with a body that has the outcome only.
func shows[Q, A, B any](wire func(A) B) func(*call, Q, A) answer {
	return func(_ *call, _ Q, a A) answer { return answer{fasthttp.StatusOK, wire(a)} }
}

// showsItself is the last step of an operation whose outcome is the body.
func showsItself[Q, A any](_ *call, _ Q, a A) answer { return answer{fasthttp.StatusOK, a} }

// showsStatus makes the last step of an operation whose answer has no body.
func showsStatus[Q any](status int) func(*call, Q, nothing) answer {
	return func(*call, Q, nothing) answer { return answer{status: status} }
}

// parsed is a first step that is a stage of the request's trace.
func parsed[Q any](read func(*call) (Q, error)) func(context.Context, *call) (Q, error) {
	return func(ctx context.Context, c *call) (Q, error) {
		_, parsing := trace.Start(ctx, trace.Stage{Name: trace.Parse})
		q, err := read(c)
		parsing.End(err)
		return q, err
	}
}
