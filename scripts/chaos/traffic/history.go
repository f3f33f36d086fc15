package traffic

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// Operation is what one worker did to one subject, or saw of it.
type Operation struct {
	Worker  int    `json:"worker"`
	Kind    kind   `json:"kind"`
	Subject string `json:"subject"`
	// Event is the event that was made, changed or dropped.
	Event string `json:"event,omitempty"`
	// Face and Tag are what was registered or looked for; Tag may be keepTag in a
	// change and anyTag in a search.
	Face string `json:"face,omitempty"`
	Tag  string `json:"tag,omitempty"`
	// Missing tells that the answer was 404: no such subject, event or match.
	Missing bool `json:"missing,omitempty"`
	// Unsure tells that a removal found nothing, and an earlier try of it had no answer.
	Unsure bool `json:"unsure,omitempty"`
	// Seen are the events that a reading gave, sorted.
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
)

const (
	anyTag  = "*"
	keepTag = "="
)

// The states of a subject, beside "e1=face/tag e2=…" with its events in the order of
// their registration. It is never born twice.
const (
	unborn = "unborn"
	gone   = "gone"
)

// subjects is the model: one subject a partition.
var subjects = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		of := map[string][]porcupine.Operation{}
		for _, op := range history {
			o := op.Input.(Operation)
			of[o.Subject] = append(of[o.Subject], op)
		}
		var all [][]porcupine.Operation
		for _, part := range of {
			all = append(all, part)
		}
		return all
	},
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

// record is one event of a state.
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

// step tells whether an operation may have had its outcome in a state, and gives the
// state that it leaves.
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
	case remove:
		return o.removal(state, len(list) > 0, func() string { return gone })
	default:
		return o.sees(list), state
	}
}

// removal is the step of a removal of what is there in state or not.
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

// sees tells whether a reading gave what it should of a subject with these events.
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
