package engine

import "context"

// Turn is the right of an extraction to one of the workers, from a scheduler of the caller's.
type Turn interface {
	// Wanted reports whether another extraction shall have the turn now.
	Wanted() bool
	// Lend lends the turn to that extraction and waits until it is back. It returns the error
	// of ctx when ctx ends first.
	Lend(ctx context.Context) error
}

type turnKey struct{}

// WithTurn returns a context for one extraction that has a turn. Between its steps the
// extraction lends the turn if it is wanted, at most once. The extraction that borrows it
// gets a worker of its own. A large image never lends, because its pixels stay in memory.
func WithTurn(ctx context.Context, t Turn) context.Context {
	return context.WithValue(ctx, turnKey{}, t)
}

// extraction is an image in work.
type extraction struct {
	e      *Engine
	memory lease        // of its pixels
	home   chan *worker // where its worker goes afterwards
}

// pause is called between two steps. It returns the error of ctx.
func (x *extraction) pause(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t, ok := ctx.Value(turnKey{}).(Turn)
	if !ok || x.memory.held > keepBytes || !t.Wanted() {
		return nil
	}
	select {
	case spare := <-x.e.spare:
		x.e.workers <- spare // has room, because x has one of the workers
		x.home = x.e.spare
	default:
		return nil
	}
	// The borrower may need all memory. The pixels that stay are at most keepBytes.
	held := x.memory.held
	x.memory.end()
	if err := t.Lend(ctx); err != nil {
		return err
	}
	return x.memory.raise(ctx, held)
}
