package traffic

import (
	"context"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"slices"
	"time"
)

// settleTime is how long after the faults a merge may still be under way whose client left.
const settleTime = 20 * time.Second

// Merge is what became of a merge.
type Merge struct {
	Call, End time.Duration // End is 0 for a merge that reached no node
	Shards    [2]int        // of the target and the source
	Left      bool          // its client did not wait for an answer
}

// MergesOf returns the merges that the clients of t asked for.
func MergesOf(t *Traffic) (list []Merge) {
	for _, p := range t.pairs {
		list = append(list, Merge{p.call, p.end, [2]int{shardOf(p.target), shardOf(p.source)}, p.left})
	}
	return list
}

// wanted returns the events that a subject of the pair has at the end.
func (p *pair) wanted(subject string) (events []string) {
	for _, f := range p.faces {
		home := p.target
		if f.at == onSource && p.end == 0 {
			home = p.source
		}
		if f.at != nowhere && home == subject {
			events = append(events, p.ids[[2]string{subject, f.face}])
		}
	}
	slices.Sort(events)
	return events
}

// check returns an error unless both subjects of a pair have what they should have. The merge has
// ended, or never began. The history gets a search for each face.
func (t pairing) check(ctx context.Context, p *pair, first int) error {
	for i, f := range p.faces {
		if err := t.seek(ctx, p, f, plan{worker: p.worker, first: first + i}); err != nil {
			return err
		}
	}
	for _, subject := range []string{p.target, p.source} {
		a, list, err := t.eventsOf(ctx, first, subject)
		if err != nil {
			return err
		}
		if want := p.wanted(subject); !slices.Equal(list, want) {
			return p.wrong(subject, list, a.Node)
		}
	}
	for _, badge := range p.badges {
		if badge == "" {
			continue
		}
		if _, err := t.lookUp(ctx, first, Named{Worker: p.worker, Badge: badge}); err != nil {
			return err
		}
	}
	return nil
}

// wrong returns the error for a subject with the wrong events.
func (p *pair) wrong(subject string, events []string, node string) error {
	return fmt.Errorf("subject %s of the merge of %s into %s (call %s, end %s, left %v) has the events %q at %s, want %q: %w",
		subject, p.source, p.target, p.call, p.end, p.left, events, node, p.wanted(subject), errAnswer)
}

// after sends the request for a merge that has ended again, and registers another subject with the
// external id of its source, each half of the time.
func (t pairing) after(ctx context.Context, r *mrand.Rand, p *pair, first int) error {
	if r.IntN(2) == 0 {
		a, err := t.do(ctx, t.big, first, p.request())
		if err != nil {
			return err
		}
		if err := t.answered(p, a); err != nil {
			return err
		}
	}
	if p.badges[1] == "" || r.IntN(2) == 0 {
		return nil
	}
	return t.register(ctx, plan{worker: p.worker, first: first}, Named{Worker: p.worker, Badge: p.badges[1]})
}

// settle waits until each merge whose client left has ended, and checks all pairs. A merge of which
// nothing is to be seen by then reached no node.
func (t pairing) settle(ctx context.Context) (err error) {
	late := t.Now() + settleTime
	for n, p := range t.pairs {
		failed := t.wait(ctx, p, n, late)
		if failed == nil {
			failed = t.check(ctx, p, n)
		}
		t.judge(p)
		err = errors.Join(err, failed)
	}
	return err
}

// wait waits until a merge has ended, or until late. It looks at least once.
func (t pairing) wait(ctx context.Context, p *pair, first int, late time.Duration) error {
	for looked := false; p.end == 0 && (!looked || t.Now() < late); looked = true {
		_, events, err := t.eventsOf(ctx, first, p.source)
		if err != nil {
			return err
		}
		if len(events) == 0 {
			p.end = t.Now()
			t.moved(p)
			return nil
		}
		pause(ctx, pairLook)
	}
	if p.end == 0 && p.faces[len(p.faces)-1].at == nowhere {
		return fmt.Errorf("source %s of a merge was gone and is there again: %w", p.source, errAnswer)
	}
	return nil
}

// divide divides a list into the entries of others and those of the pairs.
func (t pairing) divide(list []entry) (others, paired []entry) {
	of := map[string]bool{}
	for _, p := range t.pairs {
		of[p.source], of[p.target] = true, true
	}
	for _, e := range list {
		if of[e.subject] {
			paired = append(paired, e)
		} else {
			others = append(others, e)
		}
	}
	return others, paired
}

// listedOf returns the events of a subject in a list, sorted.
func listedOf(list []entry, subject string) (events []string) {
	for _, e := range list {
		if e.subject == subject {
			events = append(events, e.event)
		}
	}
	slices.Sort(events)
	return events
}

// listed returns an error unless the list of a gallery at the end has the right events of each pair.
// It returns the other entries.
func (t pairing) listed(list []entry, node string) (others []entry, err error) {
	others, paired := t.divide(list)
	for _, p := range t.pairs {
		for _, subject := range []string{p.target, p.source} {
			if events := listedOf(paired, subject); !slices.Equal(events, p.wanted(subject)) {
				return nil, p.wrong(subject, events, node+" (list)")
			}
		}
	}
	return others, nil
}

// copied returns an error if a backup lacks an event of a pair that was acknowledged before it was
// made, or has one of a later time. Source and target may be of different moments.
func (t pairing) copied(c Copy) error {
	enrolled := map[string]Paired{}
	for _, o := range t.Paired {
		if o.Kind == enrol {
			enrolled[o.Face] = o
		}
	}
	for _, p := range t.pairs {
		target, source := listedOf(c.paired, p.target), listedOf(c.paired, p.source)
		have := 0
		for _, f := range p.faces {
			if f.at == nowhere {
				continue
			}
			o, found := enrolled[f.face], 0
			if slices.Contains(target, p.ids[[2]string{p.target, f.face}]) {
				found++
				if f.at == onSource && (p.end == 0 || p.call > c.To) {
					return fmt.Errorf("%s of a merge is copied in a backup made before: %w", f.face, errAnswer)
				}
			}
			if slices.Contains(source, p.ids[[2]string{p.source, f.face}]) {
				found++
				if p.end != 0 && p.end < c.From {
					return fmt.Errorf("%s of a merge is at its source in a backup made after: %w", f.face, errAnswer)
				}
			}
			if found == 0 && o.End < c.From || found > 0 && o.Call > c.To {
				return fmt.Errorf("a backup made from %s to %s has %d events of %s, registered from %s to %s and merged from %s to %s: %w",
					c.From, c.To, found, f.face, o.Call, o.End, p.call, p.end, errAnswer)
			}
			have += found
		}
		if have != len(target)+len(source) {
			return fmt.Errorf("a backup has the events %q and %q of the pair %s: %w", target, source, p.key, errAnswer)
		}
	}
	return nil
}
