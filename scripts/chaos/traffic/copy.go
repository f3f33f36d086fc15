package traffic

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Copy is the content of a restored backup.
type Copy struct {
	// From and To are the time when the backup was made, counted from the beginning.
	// For each subject the backup may have the state of any moment between the two.
	From, To time.Duration
	active   []entry // without those of pairs
	paired   []entry
	node     string
}

// ReadCopy lists the content of a restored cluster. restored returns senders to its
// nodes.
func (t *Traffic) ReadCopy(ctx context.Context, restored func(apiKey string) Sender, from, to time.Duration) (Copy, error) {
	s := restored(t.keys[0])
	c := Copy{From: from, To: to, node: s.Nodes()[0]}
	list, _, err := t.list(ctx, s, 0)
	if err != nil {
		return c, err
	}
	c.active, c.paired = pairing{reader{t}}.divide(list)
	_, total, err := t.list(ctx, restored(t.keys[1]), 0)
	if err != nil {
		return c, err
	}
	return c, crowded(total, SmallSize)
}

// Whole adds a copy to the history as one reading of each subject, at the time when the
// backup was made. The backup must have everything acknowledged before that time, and
// nothing that started after it.
func (t *Traffic) Whole(c Copy) error {
	if err := (pairing{reader{t}}).copied(c); err != nil {
		return err
	}
	ops, err := listed(t.History, c.active, Operation{Worker: -1, Kind: events, Call: c.From, End: c.To, Node: c.node})
	if err != nil {
		return err
	}
	fleeting := map[string]bool{} // they have expired since, in the copy, too
	for _, o := range t.History {
		fleeting[o.Subject] = fleeting[o.Subject] || o.Expiry()
	}
	t.History = append(t.History, slices.DeleteFunc(ops, func(o Operation) bool { return fleeting[o.Subject] })...)
	return nil
}

// Erased checks a restoration that knows of a newer backup. It must leave out each
// subject that the newer backup does not have, because that subject was erased in
// between. All other subjects must be as in whole, the same backup restored without
// leaving anything out.
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
