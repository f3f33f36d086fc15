package backup

import (
	"fmt"

	"facet/raftfsm/shardfsm"
	"facet/router/claims"
	"facet/shard"
)

// note takes down the external id of a restored entry, to be claimed.
func (l *loader) note(e *shard.CopiedEntry) error {
	if len(e.Note) == 0 {
		return nil
	}
	name := shard.ExternalOf(e.Note)
	if name.IsZero() {
		return nil
	}
	if l.noted = append(l.noted, shard.NotedSubject{Subject: e.Subject, Name: name}); len(l.noted) < claimsMax {
		return nil
	}
	return l.claim()
}

// claimsMax is the most external ids that are claimed at once.
const claimsMax = 256

// claim claims the external ids of the subjects in l.noted, each at its home. A claim that comes
// twice changes nothing.
func (l *loader) claim() error {
	for home, c := range claims.Of(l.slice.Gallery, l.slice.Generation, l.shards, l.noted) {
		raw, err := l.target.Propose(l.ctx, home, shardfsm.ClaimOp.Encode(c))
		if err != nil {
			return err
		}
		a, err := shardfsm.ClaimOp.Answer(raw)
		if err == nil && a.Status != shardfsm.Done {
			err = fmt.Errorf("the external ids of gallery %s do not fit: %s", c.Gallery, a.Status)
		}
		if err != nil {
			return err
		}
	}
	l.noted = nil
	return nil
}
