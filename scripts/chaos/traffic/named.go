package traffic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// badges is the number of external ids that all workers share.
const badges = 12

func badge(n int) string { return fmt.Sprint("badge-", n) }

// Named is an operation of one worker on one external id.
type Named struct {
	Worker int    `json:"worker"`
	Badge  string `json:"badge"`
	// Kind is enrol, remove or find.
	Kind kind `json:"kind"`
	// Subject is the subject that was registered, is to be removed, or has the id. It is empty for a
	// search that found none.
	Subject string `json:"subject"`
	// Refused reports whether a registration was refused because Subject has the id. Missing and
	// Unsure are those of an Operation.
	Refused bool          `json:"refused,omitempty"`
	Missing bool          `json:"missing,omitempty"`
	Unsure  bool          `json:"unsure,omitempty"`
	Call    time.Duration `json:"call"` // since the beginning
	End     time.Duration `json:"end"`
	Node    string        `json:"node"`
}

// step reports whether an operation may have its outcome while holder has the external id, and
// returns the holder after it.
func (o Named) step(holder string) (bool, string) {
	switch {
	case o.Kind == enrol && !o.Refused:
		return holder == "", o.Subject
	case o.Kind != remove:
		return holder == o.Subject, holder
	case holder == o.Subject && (o.Unsure || !o.Missing):
		return true, ""
	default:
		return o.Unsure || o.Missing && holder != o.Subject, holder
	}
}

// names is the model of external ids. Each is a partition of its own.
var names = porcupine.Model{
	Partition:         partition(func(input any) string { return input.(Named).Badge }),
	Init:              func() any { return "" },
	Step:              func(state, input, _ any) (bool, any) { return input.(Named).step(state.(string)) },
	DescribeOperation: func(input, _ any) string { return fmt.Sprintf("%+v", input) },
}

// UniquelyNamed checks the history of external ids: each has one subject at a time.
func UniquelyNamed(history []Named) error {
	ops := make([]porcupine.Operation, 0, len(history))
	for _, o := range history {
		ops = append(ops, porcupine.Operation{ClientId: o.Worker, Input: o, Call: o.Call.Nanoseconds(), Return: o.End.Nanoseconds()})
	}
	if result := porcupine.CheckOperationsTimeout(names, ops, checkTimeout); result != porcupine.Ok {
		return fmt.Errorf("the history of external ids is %s, not linearizable", result)
	}
	return nil
}

// name registers a subject with an external id, finds it, or finds and removes it.
func (t *Traffic) name(ctx context.Context, r *mrand.Rand, p plan) error {
	o := Named{Worker: p.worker, Badge: badge(r.IntN(badges))}
	if len(t.options.Photos) > 0 {
		return t.find(ctx, p)
	}
	if r.IntN(2) == 0 {
		return t.register(ctx, p, o)
	}
	found, err := t.lookUp(ctx, p.first, o)
	if err != nil || found.Subject == "" || r.IntN(2) == 0 {
		return err
	}
	o.Kind, o.Subject, o.Call = remove, found.Subject, t.Now()
	p.call = o.Call
	w, err := t.write(ctx, p, Operation{Kind: remove, Subject: o.Subject}, Request{Method: http.MethodDelete, Target: "/v1.1/subjects/" + o.Subject}, http.StatusNoContent)
	if err != nil {
		return err
	}
	o.Missing, o.Unsure, o.Node = w.Missing, w.Unsure, w.Node
	t.noteNamed(o)
	return nil
}

// register registers a subject with the external id of o.
func (t *Traffic) register(ctx context.Context, p plan, o Named) error {
	p.face, p.tag = fmt.Sprintf("%s-%d-%d", o.Badge, p.worker, p.call), ""
	body := t.options.body(p)
	body["externalId"] = o.Badge
	o.Kind, o.Call = enrol, t.Now()
	a, err := t.do(ctx, t.big, p.first, Request{Method: http.MethodPost, Target: "/v1.1/subjects", Body: body, Key: newKey()})
	if err != nil {
		return err
	}
	o.Node = a.Node
	var answer struct{ ID, EventID, Message, ErrorType string }
	if err := json.Unmarshal(a.Body, &answer); err != nil {
		return fmt.Errorf("register %s: %d %s: %w", o.Badge, a.Status, a.Body, err)
	}
	switch {
	case a.Status == http.StatusCreated:
		o.Subject = answer.ID
		t.mu.Lock()
		t.History = append(t.History, Operation{
			Worker: p.worker, Kind: enrol, Subject: answer.ID, Event: answer.EventID, Face: p.face, Call: o.Call, End: t.tick(), Node: a.Node,
		})
		t.mu.Unlock()
	case a.Status == http.StatusBadRequest && answer.ErrorType == "Duplicate":
		o.Refused, o.Subject = true, answer.Message[strings.LastIndexByte(answer.Message, ' ')+1:]
	default:
		return fmt.Errorf("register %s: %d %s: %w", o.Badge, a.Status, a.Body, errAnswer)
	}
	t.noteNamed(o)
	return nil
}

// lookUp finds the subject with the external id of o.
func (t *Traffic) lookUp(ctx context.Context, first int, o Named) (Named, error) {
	o.Kind, o.Call = find, t.Now()
	a, err := t.do(ctx, t.big, first, Request{Method: http.MethodGet, Target: "/v1.1/subjects?externalId=" + o.Badge})
	if err != nil {
		return o, err
	}
	var list struct {
		Subjects []struct{ ID, ExternalID string }
	}
	if err := json.Unmarshal(a.Body, &list); err != nil || a.Status != http.StatusOK && a.Status != http.StatusNotFound {
		return o, fmt.Errorf("find %s: %d %s: %w", o.Badge, a.Status, a.Body, errors.Join(err, errAnswer))
	}
	for _, s := range list.Subjects {
		if s.ExternalID != o.Badge {
			return o, fmt.Errorf("find %s: %s: %w", o.Badge, a.Body, errAnswer)
		}
		o.Subject = s.ID
	}
	o.Node = a.Node
	return t.noteNamed(o), nil
}

// noteNamed adds an operation that has ended to the history.
func (t *Traffic) noteNamed(o Named) Named {
	t.mu.Lock()
	defer t.mu.Unlock()
	o.End = t.tick()
	t.Named = append(t.Named, o)
	t.Counts["named "+string(o.Kind)]++
	return o
}
