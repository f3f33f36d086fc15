package calls

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"facet/internal/id"
	"facet/internal/requestlog"
	"facet/internal/trace"
)

// A read of several groups at the same member is one request, and its answer has an answer or an error for
// each group. The member answers when the last group has answered: a search needs all of them, so a late
// one delays nothing that could be used earlier.
const (
	methodGrouped = "groups.read"
	// groupsMax is the most groups of a request.
	groupsMax = 1024
	// answersBytesMax is the most bytes that the answers of one request take together, less than the
	// transport's bound. A group whose answer finds no room is asked by itself.
	answersBytesMax = 16 << 20
)

// reply is the answer of one group.
type reply[A any] struct {
	a   A
	err error
}

// callGroups carries out m at member for each of groups, in one request. It returns a reply for each.
func callGroups[H, Q, A any](ctx context.Context, c *Caller, m Method[H, Q, A], groups []id.Shard, member id.Member, q Q) []reply[A] {
	replies := make([]reply[A], len(groups))
	if len(groups) == 1 {
		replies[0].a, replies[0].err = CallAt(ctx, c, m, groups[0], member, q)
		return replies
	}
	ctx, call := trace.Start(ctx, trace.Stage{Name: trace.Call, Method: m.Name, Group: groups[0], More: len(groups) - 1, Member: member})
	answers, err := c.callGrouped(ctx, m.Name, groups, member, q)
	call.End(err)
	for i := range replies {
		r := &replies[i]
		switch {
		case err != nil:
			r.err = err
		case answers[i].Fault != nil:
			r.err = DecodeFault(answers[i].Fault)
		default:
			if r.err = wireDec.Unmarshal(answers[i].Answer, &r.a); r.err != nil {
				r.err = fmt.Errorf("read %s answer: %w", m.Name, r.err)
			}
		}
	}
	return replies
}

// callGrouped sends the request and returns as many answers as there are groups.
func (c *Caller) callGrouped(ctx context.Context, method string, groups []id.Shard, member id.Member, q any) ([]groupAnswer, error) {
	query, err := wireEnc.Marshal(q)
	if err != nil {
		return nil, fmt.Errorf("encode %s request: %w", method, err)
	}
	body, err := wireEnc.Marshal(grouped{method, groups, query, requestlog.ID(ctx), trace.Parent(ctx)})
	if err != nil {
		return nil, fmt.Errorf("encode %s request: %w", method, err)
	}
	b, err := c.peers.Call(ctx, member, methodGrouped, body)
	if err != nil {
		return nil, err
	}
	var answers []groupAnswer
	if err := wireDec.Unmarshal(b, &answers); err != nil {
		return nil, fmt.Errorf("read %s answers: %w", method, err)
	}
	if len(answers) != len(groups) {
		return nil, fmt.Errorf("%s answered %s for %d groups of %d", member, method, len(answers), len(groups))
	}
	return answers, nil
}

// serveGrouped answers a peer's request for several groups.
func (c *Caller) serveGrouped(ctx context.Context, body []byte) ([]byte, error) {
	var q grouped
	if err := wireDec.Unmarshal(body, &q); err != nil {
		return nil, fmt.Errorf("read %s request: %w", methodGrouped, err)
	}
	h, ok := c.methods[q.Method]
	if !ok || len(q.Groups) == 0 || len(q.Groups) > groupsMax {
		return nil, fmt.Errorf("router: %d groups, or unknown method %q", len(q.Groups), q.Method)
	}
	answers, err := h.many(ctx, c, q)
	if err != nil {
		return nil, err
	}
	return wireEnc.Marshal(answers)
}

func (m served[H, Q, A]) many(ctx context.Context, c *Caller, q grouped) ([]groupAnswer, error) {
	var query Q
	if err := wireDec.Unmarshal(q.Query, &query); err != nil {
		return nil, fmt.Errorf("read %s request: %w", m.name, err)
	}
	return c.each(ctx, q, func(ctx context.Context, group id.Shard) (any, error) { return m.here(ctx, c, group, query) })
}

// each answers q with what answer returns for each group.
func (c *Caller) each(ctx context.Context, q grouped, answer func(context.Context, id.Shard) (any, error)) ([]groupAnswer, error) {
	ctx, end := c.begin(ctx, q.Method, q.Request, q.Trace)
	answers, errs := make([]groupAnswer, len(q.Groups)), make([]error, len(q.Groups))
	var room atomic.Int64
	room.Store(answersBytesMax)
	var work sync.WaitGroup
	for i, group := range q.Groups {
		work.Go(func() {
			a, err := answer(ctx, group)
			if err == nil {
				answers[i].Answer, err = encodeWithin(&room, a)
			}
			errs[i] = err
		})
	}
	work.Wait()
	for i, err := range errs {
		if err != nil {
			answers[i] = groupAnswer{Fault: EncodeFault(err)}
		}
	}
	end(q.Groups[0], errors.Join(errs...))
	return answers, nil
}

// errNoRoom is returned for a group whose answer does not fit beside the others. It can be asked by itself.
var errNoRoom = &Error{Kind: Unavailable, Message: "the answers of a node's shards are too large together; try again", RetryAfter: RetryLater}

// encodeWithin encodes the answer of a group, and takes room for it.
func encodeWithin(room *atomic.Int64, a any) ([]byte, error) {
	b, err := wireEnc.Marshal(a)
	if err == nil && room.Add(-int64(len(b))) < 0 {
		err = errNoRoom
	}
	return b, err
}
