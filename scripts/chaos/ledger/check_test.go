package ledger

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"facet/internal/must"
	"facet/internal/tiles"
	"facet/node/audit/entry"
)

// logOf returns a log with these records.
func logOf(t *testing.T, records ...*entry.Record) *log {
	t.Helper()
	l := &log{}
	for _, r := range records {
		must.Do(t, l.append(r.Encode()))
	}
	return l
}

var began = time.UnixMilli(1_795_000_000_000)

// record returns the record of a try, whose request id is its number.
func record(kind entry.Kind, number byte, status int) *entry.Record {
	r := entry.New(kind, began)
	r.ID, r.Status, r.Operation = [16]byte{15: number}, status, "POST /v1.1/subjects"
	r.Purpose, r.Key = purposePrefix+string('0'+number), "KEY"
	return r
}

func TestEachBrokenPromiseIsFound(t *testing.T) {
	t.Parallel()
	id := func(n byte) string { return strings.Repeat("0", 31) + string('0'+n) }
	tries := []try{
		{operation: "POST /v1.1/face/search", node: "n1", status: 200, id: id(0), ended: began},
		{operation: "POST /v1.1/subjects", node: "n2", status: 201, id: id(1), ended: began},
		{operation: "POST /v1.1/subjects", node: "n2"},
		{operation: "POST /v1.1/subjects", node: "n1", status: 500, id: id(3), withheld: true, ended: began},
	}
	search, intent, write := record(entry.Request, 0, 200), record(entry.Intent, 1, 0), record(entry.Request, 1, 201)
	whole := []*entry.Record{search, intent, write}
	order, outcome := entry.New(entry.Intent, began), entry.New(entry.Command, began)
	order.ID, outcome.ID, order.Operation = [16]byte{1}, [16]byte{1}, "set tenant"
	late := record(entry.Request, 2, 201)
	late.Time += (completedWithin + time.Second).Milliseconds()
	foreign := record(entry.Request, 9, 200)
	other := record(entry.Request, 1, 201)
	other.ID[0] = 1
	for want, records := range map[string][]*entry.Record{
		"":                             whole,
		"an answer without a record":   {order, intent, outcome, write},
		"a second record of an answer": append([]*entry.Record{search}, whole...),
		"a record with another status": {record(entry.Request, 0, 404), intent, write},
		"a record of a request that no client sent":        append([]*entry.Record{foreign}, whole...),
		"an outcome of a write without an intent":          {search, write, intent},
		"a record of another request id than the answer's": append([]*entry.Record{intent, other}, whole...),
		"set tenant":                                {search, order, intent, write, late},
		"an intent without an outcome":              append(whole[:3:3], record(entry.Intent, 2, 0), record(entry.Intent, 3, 0), late),
		"a completed intent that is not in the log": append([]*entry.Record{record(entry.Completed, 3, 0)}, whole...),
	} {
		l := &Ledger{tries: tries}
		_, err := l.compare(logOf(t, records...), nil)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: got %v", want, err)
		}
	}
	l := &Ledger{tries: tries}
	if _, err := l.compare(logOf(t, search, intent, record(entry.Completed, 1, 0), write), nil); err != nil {
		t.Errorf("the outcome comes from a disk after the intent was completed: %v", err)
	}
	for node, ok := range map[string]bool{"n1": true, "n2": false} {
		sum, err := l.compare(logOf(t, intent, write), []Loss{{Node: node, From: began.Add(-time.Second), To: began.Add(time.Second)}})
		if (err == nil) != ok || ok && (sum.Lost != 1 || sum.Answers != 1 || sum.Withheld != 1 || sum.Unanswered != 1) {
			t.Errorf("with the disk of %s lost: %+v, %v", node, sum, err)
		}
	}
}

// A log that was cut, or has another record than before, does not contain the checkpoint of before.
func TestForkedLogIsFound(t *testing.T) {
	t.Parallel()
	first, second := record(entry.Request, 0, 200), record(entry.Request, 1, 200)
	seen := logOf(t, first, second)
	root, err := tlog.TreeHash(2, seen.stored)
	must.Do(t, err)
	c := tiles.Checkpoint{Tree: tlog.Tree{N: 2, Hash: root}}
	for want, l := range map[string]*log{"": logOf(t, first, second, first), "has 1 now": logOf(t, first), "another hash": logOf(t, second, first, first)} {
		if err := l.contains(c); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: got %v", want, err)
		}
	}
}
