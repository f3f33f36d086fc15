package router

import (
	"context"
	"time"

	"facet/raftfsm/metafsm"
	"facet/router/calls"
)

// averagable returns an error while a node of the cluster may not know templates of subjects.
func (r *cluster) averagable() error {
	if r.groups.Meta().Level() >= metafsm.LevelSubjects {
		return nil
	}
	return &Error{
		Kind: Unavailable, RetryAfter: calls.RetryLater,
		Message: "subjectTemplates works as soon as all nodes run this version: finish the upgrade, then try again",
	}
}

// known waits until every node answers by the change of a gallery that is committed: a node trusts
// its replica of meta for trustMax without a new round.
func known(ctx context.Context) error {
	select {
	case <-time.After(trustMax):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
