package ledger

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"facet/node/audit/entry"
)

const (
	// patience is how long records may follow after all nodes serve again: the spools of best effort.
	patience = 30 * time.Second
	// completedWithin is how old an intent without an outcome may be. The cluster completes one after a
	// minute.
	completedWithin = 2 * time.Minute
	// exampleMax is the most problems of one kind that an error names.
	exampleMax = 5
)

// Loss is the loss of a node's disk. The answers that the node gave between From and To may have lost
// their records of best effort, which lay on that disk only.
type Loss struct {
	Node     string
	From, To time.Time
}

// Sum counts what a check has seen.
type Sum struct {
	// Answers have one record each. Unanswered tries have none or one, and Withheld answers too. Early are
	// answers that came before the node knew who asked.
	Answers, Unanswered, Withheld, Early int
	// Completed intents got their outcome from the cluster. Lost records lay on a lost disk only.
	Completed, Lost int
	Records         int
	Checkpoints     int
}

// String describes the sum in a line.
func (s Sum) String() string {
	return fmt.Sprintf("%d answers have one record each of the log's %d; %d tries had no answer, %d answers were withheld, %d came before the signature was read; "+
		"%d intents were completed by the cluster; %d records were lost with a disk; the log contains %d earlier checkpoints",
		s.Answers, s.Records, s.Unanswered, s.Withheld, s.Early, s.Completed, s.Lost, s.Checkpoints)
}

// Add adds the counts of another check.
func (s *Sum) Add(o Sum) {
	s.Answers += o.Answers
	s.Unanswered += o.Unanswered
	s.Withheld += o.Withheld
	s.Early += o.Early
	s.Completed += o.Completed
	s.Lost += o.Lost
	s.Records += o.Records
	s.Checkpoints += o.Checkpoints
}

// problems gathers what is wrong, by kind.
type problems struct {
	kinds []string
	of    map[string][]string
}

func (p *problems) add(kind, format string, args ...any) {
	if p.of == nil {
		p.of = map[string][]string{}
	}
	if len(p.of[kind]) == 0 {
		p.kinds = append(p.kinds, kind)
	}
	p.of[kind] = append(p.of[kind], fmt.Sprintf(format, args...))
}

func (p *problems) err() error {
	var all []error
	for _, kind := range p.kinds {
		list := p.of[kind]
		all = append(all, fmt.Errorf("audit: %d × %s, as %s", len(list), kind, strings.Join(list[:min(len(list), exampleMax)], "; ")))
	}
	return errors.Join(all...)
}

// Check reads the whole log while no client works. It returns an error unless each answer that a client saw
// has exactly one record, every record belongs to a try, the intent of each write comes before its outcome,
// and the log contains every checkpoint that was seen.
func (l *Ledger) Check(ctx context.Context, lost []Loss) (sum Sum, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all log
	for late := time.Now().Add(patience); ; {
		if err := l.read(ctx, &all); err != nil {
			return sum, err
		}
		sum, err = l.compare(&all, lost)
		if err == nil || time.Now().After(late) {
			break
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return sum, err
		}
	}
	sum.Checkpoints = len(l.checkpoints)
	for _, c := range l.checkpoints {
		err = errors.Join(err, all.contains(c))
	}
	return sum, err
}

// compare compares the tries with a log. The caller holds mu.
func (l *Ledger) compare(all *log, lost []Loss) (sum Sum, err error) {
	var wrong problems
	sum.Records = len(all.records)
	of := l.sort(all, &wrong, &sum)
	for number, t := range l.tries {
		kept := of[number]
		switch {
		case t.status == 0:
			sum.Unanswered++
		case t.withheld:
			sum.Withheld++
		default:
			l.judge(number, t, kept, lost, &wrong, &sum)
		}
	}
	return sum, wrong.err()
}

// sort returns the records of requests by the tries that they name. It checks what holds without regard to
// answers.
func (l *Ledger) sort(all *log, wrong *problems, sum *Sum) map[int][]*entry.Record {
	of := map[int][]*entry.Record{}
	answered, intents := map[[16]byte]int{}, map[[16]byte]*entry.Record{}
	completed := map[[16]byte]bool{} // the outcome may come later, from the disk of a node that was away
	for at, r := range all.records {
		number, ok := numberOf(r.Purpose)
		switch {
		case r.Kind == entry.Completed:
			sum.Completed++
			if intents[r.ID] == nil {
				wrong.add("a completed intent that is not in the log", "record %d", at)
			}
			delete(intents, r.ID)
			completed[r.ID] = true
			continue
		case r.Kind == entry.Command:
			delete(intents, r.ID)
			continue
		case r.Kind == entry.Intent && r.Key == "": // an operator's
			intents[r.ID] = r
			continue
		case r.Kind == entry.Act, r.Kind == entry.Withheld:
			continue
		case r.Purpose == "" && r.Kind == entry.Request && strings.HasPrefix(r.Operation, http.MethodGet):
			continue // the auditor, and probes of the harness
		case !ok || number >= len(l.tries):
			wrong.add("a record of a request that no client sent", "record %d: %s %q", at, r.Operation, r.Purpose)
			continue
		}
		if r.Kind == entry.Intent {
			intents[r.ID] = r
			continue
		}
		if answered[r.ID]++; answered[r.ID] > 1 {
			wrong.add("a second record of an answer", "record %d: try %d, %s", at, number, l.tries[number])
		}
		if l.tries[number].writes() && r.Status < http.StatusMultipleChoices && intents[r.ID] == nil && !completed[r.ID] {
			wrong.add("an outcome of a write without an intent before it", "record %d: try %d, %s", at, number, l.tries[number])
		}
		delete(intents, r.ID)
		of[number] = append(of[number], r)
	}
	if n := len(all.records); n > 0 {
		for _, r := range intents {
			if age := time.UnixMilli(all.records[n-1].Time).Sub(time.UnixMilli(r.Time)); age > completedWithin {
				wrong.add("an intent without an outcome", "%s of request %x, %s old", r.Operation, r.ID, age)
			}
		}
	}
	return of
}

// judge compares a try that was answered with its records.
func (l *Ledger) judge(number int, t try, kept []*entry.Record, lost []Loss, wrong *problems, sum *Sum) {
	var own *entry.Record
	for _, r := range kept {
		if fmt.Sprintf("%x", r.ID) == t.id {
			own = r
		} else if !strings.HasPrefix(t.operation, http.MethodGet) { // Go's client repeats a GET on a broken connection
			wrong.add("a record of another request id than the answer's", "try %d, %s: %x", number, t, r.ID)
		}
	}
	switch {
	case own != nil && own.Status != t.status:
		wrong.add("a record with another status than the answer's", "try %d, %s: %d", number, t, own.Status)
	case own != nil:
		sum.Answers++
	case t.early():
		sum.Early++
	case t.isLost(lost):
		sum.Lost++
	default:
		wrong.add("an answer without a record", "try %d, %s", number, t)
	}
}

// writes reports whether the request has an intent.
func (t try) writes() bool {
	return !strings.HasPrefix(t.operation, http.MethodGet) && !strings.Contains(t.operation, "/face/")
}

// early reports whether the answer may have come before the node knew who asked: the body came late, the
// node is busy, or it knows no keys.
func (t try) early() bool {
	return t.status == http.StatusRequestTimeout || t.status == http.StatusTooManyRequests || t.status >= http.StatusInternalServerError
}

// isLost reports whether the record may have lain on a lost disk only.
func (t try) isLost(lost []Loss) bool {
	for _, o := range lost {
		if o.Node == t.node && t.ended.After(o.From) && t.ended.Before(o.To) {
			return true
		}
	}
	return false
}
