package traffic

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// Operation is an operation of one worker on one subject, or a reading of that subject.
type Operation struct {
	Worker  int    `json:"worker"`
	Kind    kind   `json:"kind"`
	Subject string `json:"subject"`
	// Event is the event that the operation created, changed or removed.
	Event string `json:"event,omitempty"`
	// Face and Tag are the face and tag that were registered or searched for. Tag may
	// be keepTag in a change and anyTag in a search.
	Face string `json:"face,omitempty"`
	Tag  string `json:"tag,omitempty"`
	// Missing reports whether the answer was 404: no such subject, event or match.
	Missing bool `json:"missing,omitempty"`
	// Unsure reports whether a removal got 404 after an earlier try that got no answer.
	Unsure bool `json:"unsure,omitempty"`
	// Seen lists the events that a reading returned, sorted.
	Seen []string      `json:"seen,omitempty"`
	Call time.Duration `json:"call"` // since the beginning
	End  time.Duration `json:"end"`
	Node string        `json:"node"`
}

type kind string

const (
	enrol  kind = "enrol"  // registers a subject with its first event
	add    kind = "add"    // registers another event
	renew  kind = "renew"  // updates a subject: its first event gets another face
	change kind = "change" // updates an event
	drop   kind = "drop"   // removes an event, and with the last one the subject
	remove kind = "remove" // removes a subject
	find   kind = "find"   // searches: Seen are the subject's events that were found
	verify kind = "verify" // compares the subject with a face
	events kind = "events" // lists the subject's events
	expire kind = "expire" // an event expires
)

const (
	anyTag  = "*"
	keepTag = "="
)

// The states of a subject. A subject with events has the state "e1=face/tag e2=…", with
// the events in the order of their registration. A subject that is gone is never
// registered again.
const (
	unborn = "unborn"
	gone   = "gone"
)

// subjects is the model. Each subject is a partition of its own.
var subjects = porcupine.Model{
	Partition:         partition(func(input any) string { return input.(Operation).Subject }),
	Init:              func() any { return unborn },
	Step:              func(state, input, _ any) (bool, any) { return input.(Operation).step(state.(string)) },
	Equal:             func(a, b any) bool { return a == b },
	DescribeOperation: func(input, _ any) string { return input.(Operation).String() },
	DescribeState:     func(state any) string { return state.(string) },
}

// String describes an Operation in a picture of a history.
func (o Operation) String() string {
	text := fmt.Sprintf("%s %.8s %s/%s", o.Kind, o.Event, o.Face, o.Tag)
	if o.Missing {
		text += ": nothing there"
	}
	if len(o.Seen) > 0 {
		text += fmt.Sprintf(": %.8s", o.Seen)
	}
	return text + " (" + o.Node + ")"
}

// record is one event in a state.
type record struct{ id, face, tag string }

func parse(state string) []record {
	if state == unborn || state == gone {
		return nil
	}
	var list []record
	for text := range strings.SplitSeq(state, " ") {
		name, rest, _ := strings.Cut(text, "=")
		face, tag, _ := strings.Cut(rest, "/")
		list = append(list, record{name, face, tag})
	}
	return list
}

func join(list []record) string {
	if len(list) == 0 {
		return gone
	}
	text := make([]string, len(list))
	for i, r := range list {
		text[i] = r.id + "=" + r.face + "/" + r.tag
	}
	return strings.Join(text, " ")
}

// step reports whether an operation may have its outcome in a state, and returns the
// state after it.
func (o Operation) step(state string) (bool, string) {
	list := parse(state)
	at := slices.IndexFunc(list, func(r record) bool { return r.id == o.Event })
	switch o.Kind {
	case enrol:
		return state == unborn, join([]record{{o.Event, o.Face, o.Tag}})
	case add:
		if o.Missing {
			return len(list) == 0, state
		}
		return len(list) > 0 && at < 0, join(append(list, record{o.Event, o.Face, o.Tag}))
	case renew, change:
		if o.Missing {
			return at < 0 && (o.Kind == change || len(list) == 0), state
		}
		if at < 0 || o.Kind == renew && at > 0 {
			return false, state
		}
		list[at].face = o.Face
		if o.Tag != keepTag {
			list[at].tag = o.Tag
		}
		return true, join(list)
	case drop:
		return o.removal(state, at >= 0, func() string { return join(slices.Delete(list, at, at+1)) })
	case expire:
		return state != unborn, join(slices.DeleteFunc(list, func(r record) bool { return r.id == o.Event }))
	case remove:
		return o.removal(state, len(list) > 0, func() string { return gone })
	default:
		return o.sees(list), state
	}
}

// removal is step for a removal. there is whether state has what is to be removed;
// without returns the state after the removal.
func (o Operation) removal(state string, there bool, without func() string) (bool, string) {
	switch {
	case o.Unsure && there, !o.Missing && there:
		return true, without()
	case o.Unsure, o.Missing && !there:
		return true, state
	default:
		return false, state
	}
}

// sees reports whether a reading of a subject with these events returned the right
// ones.
func (o Operation) sees(list []record) bool {
	var want []string
	for _, r := range list {
		if o.Kind == events || r.face == o.Face && (o.Tag == anyTag || o.Tag == r.tag) {
			want = append(want, r.id)
		}
	}
	if o.Kind == verify {
		return o.Missing == (len(want) == 0)
	}
	slices.Sort(want)
	return slices.Equal(o.Seen, want)
}
