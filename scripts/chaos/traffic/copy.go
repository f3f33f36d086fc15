package traffic

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Copy is what a copy of the galleries holds.
type Copy struct {
	// From and To are when it was made, since the beginning: it may have the state of
	// each subject of any moment between.
	From, To time.Duration
	active   []entry
	node     string
}

// ReadCopy lists a copy of the galleries. restored gives senders to the nodes that have it.
func (t *Traffic) ReadCopy(ctx context.Context, restored func(apiKey string) Sender, from, to time.Duration) (Copy, error) {
	s := restored(t.keys[0])
	c := Copy{From: from, To: to, node: s.Nodes()[0]}
	var err error
	if c.active, _, err = t.list(ctx, s, 0); err != nil {
		return c, err
	}
	_, total, err := t.list(ctx, restored(t.keys[1]), 0)
	if err != nil {
		return c, err
	}
	return c, crowded(total, SmallSize)
}

// Whole adds a copy to the history as one reading of each subject at the time when it
// was made: what was acknowledged before is in it, and nothing that began after.
func (t *Traffic) Whole(c Copy) error {
	ops, err := listed(t.History, c.active, Operation{Worker: -1, Kind: events, Call: c.From, End: c.To, Node: c.node})
	if err != nil {
		return err
	}
	t.History = append(t.History, ops...)
	return nil
}

// Erased fails if a copy has a subject that a newer one does not have: it was erased
// in between, and a restoration that knows of the newer one leaves it out. The rest
// must be as the same backup gives it when nothing is left out.
func Erased(restored, whole, newer Copy) error {
	has := func(list []entry, subject string) bool {
		return slices.ContainsFunc(list, func(e entry) bool { return e.subject == subject })
	}
	for _, e := range restored.active {
		if !has(newer.active, e.subject) {
			return fmt.Errorf("subject %s was erased before the newer backup, and is back at %s", e.subject, restored.node)
		}
		if !slices.Contains(whole.active, e) {
			return fmt.Errorf("event %s of subject %s is at %s, and not in the backup", e.event, e.subject, restored.node)
		}
	}
	for _, e := range whole.active {
		if has(newer.active, e.subject) && !slices.Contains(restored.active, e) {
			return fmt.Errorf("event %s of subject %s is in the backup and was not erased, and is missing at %s", e.event, e.subject, restored.node)
		}
	}
	return nil
}
