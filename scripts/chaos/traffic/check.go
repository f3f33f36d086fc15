package traffic

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// checkTimeout is the longest that the check may take. A history that it can't decide
// by then is a failure.
const checkTimeout = 2 * time.Minute

// Linearizable checks a history. After a failure it draws the history into dir.
func Linearizable(history []Operation, dir string) error {
	ops := make([]porcupine.Operation, 0, len(history))
	for _, o := range history {
		ops = append(ops, porcupine.Operation{
			ClientId: o.Worker, Input: o, Call: o.Call.Nanoseconds(), Return: o.End.Nanoseconds(),
		})
	}
	result, info := porcupine.CheckOperationsVerbose(subjects, ops, checkTimeout)
	if result == porcupine.Ok {
		return nil
	}
	path := filepath.Join(dir, "history.html")
	f, err := os.Create(path)
	if err == nil {
		err = porcupine.Visualize(subjects, info, f) //nolint:misspell // the library's spelling
		_ = f.Close()                                // it is evidence, not the verdict
	}
	if err != nil {
		path = "no picture: " + err.Error()
	}
	return fmt.Errorf("the history of subjects is %s, not linearizable (%s)%s", result, path, culprits(history))
}

// culprits describes the first subjects whose histories are not linearizable, with the
// operations on them.
func culprits(history []Operation) string {
	const most = 3
	of := map[string][]Operation{}
	for _, o := range history {
		of[o.Subject] = append(of[o.Subject], o)
	}
	text, found := "", 0
	for subject, part := range of {
		ops := make([]porcupine.Operation, 0, len(part))
		for _, o := range part {
			ops = append(ops, porcupine.Operation{ClientId: o.Worker, Input: o, Call: o.Call.Nanoseconds(), Return: o.End.Nanoseconds()})
		}
		if porcupine.CheckOperationsTimeout(subjects, ops, checkTimeout/100) == porcupine.Ok {
			continue
		}
		if found++; found > most {
			break
		}
		text += fmt.Sprintf("\n subject %s:", subject)
		slices.SortFunc(part, func(a, b Operation) int { return int(a.Call - b.Call) })
		for _, o := range part[max(0, len(part)-20):] {
			text += fmt.Sprintf("\n  %9.3fs to %9.3fs  worker %d  %s", o.Call.Seconds(), o.End.Seconds(), o.Worker, o)
		}
	}
	return text
}

// entry is one active entry of a gallery's list.
type entry struct{ subject, event string }

// listed turns a whole list into one reading of each subject of the history. The list
// was read in one go while nobody wrote. listed returns an error for an entry that
// nobody registered and for an entry that is in the list twice.
func listed(history []Operation, list []entry, seen Operation) ([]Operation, error) {
	of := map[string][]string{}
	for _, o := range history {
		of[o.Subject] = nil
	}
	for _, e := range list {
		have, known := of[e.subject]
		switch {
		case !known:
			return nil, fmt.Errorf("subject %s is listed at %s, and no answer ever named it", e.subject, seen.Node)
		case slices.Contains(have, e.event):
			return nil, fmt.Errorf("event %s of subject %s is listed twice at %s", e.event, e.subject, seen.Node)
		}
		of[e.subject] = append(have, e.event)
	}
	var ops []Operation
	for subject, events := range of {
		slices.Sort(events)
		seen.Subject, seen.Seen = subject, events
		ops = append(ops, seen)
	}
	return ops, nil
}

// Complete adds the final readings to the history: each node's list of the gallery, and
// a search through each node for the people and the external ids that all workers share. It
// waits for the ends of merges, and checks each pair.
func (t *Traffic) Complete(ctx context.Context) error {
	if err := (pairing{reader{t}}).settle(ctx); err != nil {
		return err
	}
	acked := slices.Clone(t.History)
	for i, name := range t.big.Nodes() {
		call := t.Now()
		list, _, err := t.list(ctx, t.big, i)
		if err != nil {
			return err
		}
		list, err = pairing{reader{t}}.listed(list, name)
		if err != nil {
			return err
		}
		ops, err := listed(acked, list, Operation{Worker: -1, Kind: events, Call: call, End: t.Now(), Node: name})
		if err != nil {
			return err
		}
		t.History = append(t.History, ops...)
		for n := range badges {
			if _, err := t.lookUp(ctx, i, Named{Worker: -1, Badge: badge(n)}); err != nil {
				return err
			}
		}
		for n := range t.options.crowd() {
			if err := t.find(ctx, t.look(-1, i, hot(n))); err != nil {
				return err
			}
		}
	}
	return t.count(ctx, 0)
}

// crowded returns an error if a gallery holds more entries than its size.
func crowded(total, size int) error {
	if total > size {
		return fmt.Errorf("the gallery of %d slots holds %d entries", size, total)
	}
	return nil
}
