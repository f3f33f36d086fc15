package traffic

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// Paired is an operation on one face of a pair of subjects, the source of a merge and its target.
type Paired struct {
	Worker int    `json:"worker"`
	Face   string `json:"face"`
	// Kind is enrol or find of a client, or copied or cleared, the steps of the merge.
	Kind kind `json:"kind"`
	// Where is where the face was registered or found.
	Where where         `json:"where"`
	Call  time.Duration `json:"call"` // since the beginning
	End   time.Duration `json:"end"`
	Node  string        `json:"node"`
}

const (
	copied  kind = "copied"  // the target has the event, too
	cleared kind = "cleared" // the source is gone
)

// where says which subjects of a pair have an event with a face. Only a merge can put it under both.
type where string

const (
	nowhere  where = ""
	onSource where = "source"
	onTarget where = "target"
	onBoth   where = "both"
	// What a search shows that found the face on the target only.
	offSource where = "not source"
	atTarget  where = "at target"
)

// step reports whether an operation may have its outcome while a face is at, and returns where the
// face is after it.
func (o Paired) step(at where) (bool, where) {
	switch o.Kind {
	case enrol:
		return at == nowhere, o.Where
	case copied:
		return at == onSource, onBoth
	case cleared:
		return at == onBoth, onTarget
	default:
		return o.shows(at), at
	}
}

// shows reports whether a search finds a face where o did while the face is at.
func (o Paired) shows(at where) bool {
	switch o.Where {
	case offSource:
		return at == nowhere || at == onTarget
	case atTarget:
		return at == onTarget || at == onBoth
	default:
		return at == o.Where
	}
}

// reads returns the operations that show what o does. A search asks the shards of both subjects, each
// at a moment of its own. One that found a face on the target only may have asked the source's shard
// before the face was registered, and the target's after it was copied. Whatever else a search finds,
// the pair was so at one moment.
func (o Paired) reads() []Paired {
	if o.Kind != find || o.Where != onTarget {
		return []Paired{o}
	}
	source, target := o, o
	source.Where, target.Where = offSource, atTarget
	return []Paired{source, target}
}

// String describes a Paired in a report.
func (o Paired) String() string {
	return fmt.Sprintf("%9.3fs to %9.3fs  worker %d  %s: %s (%s)", o.Call.Seconds(), o.End.Seconds(), o.Worker, o.Kind, o.Where, o.Node)
}

// pairs is the model of pairs of subjects. Each face is a partition of its own.
var pairs = porcupine.Model{
	Partition: partition(func(input any) string { return input.(Paired).Face }),
	Init:      func() any { return nowhere },
	Step:      func(state, input, _ any) (bool, any) { return input.(Paired).step(state.(where)) },
}

// partition returns a function that divides a history by a part of the inputs.
func partition(by func(input any) string) func([]porcupine.Operation) [][]porcupine.Operation {
	return func(history []porcupine.Operation) (all [][]porcupine.Operation) {
		of := map[string][]porcupine.Operation{}
		for _, op := range history {
			of[by(op.Input)] = append(of[by(op.Input)], op)
		}
		for _, part := range of {
			all = append(all, part)
		}
		return all
	}
}

// MergedWhole checks the history of the pairs: each face is under the source, then perhaps under
// both, then under the target, and never under neither.
func MergedWhole(history []Paired) (err error) {
	const most = 3
	of := map[string][]porcupine.Operation{}
	for _, whole := range history {
		for _, o := range whole.reads() {
			of[o.Face] = append(of[o.Face], porcupine.Operation{ClientId: o.Worker, Input: o, Call: o.Call.Nanoseconds(), Return: o.End.Nanoseconds()})
		}
	}
	found := 0
	for face, ops := range of {
		result := porcupine.CheckOperationsTimeout(pairs, ops, checkTimeout)
		if result == porcupine.Ok {
			continue
		}
		if found++; found > most {
			break
		}
		slices.SortFunc(ops, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
		var text []string
		for i, op := range ops {
			if o := op.Input.(Paired); i == 0 || i == len(ops)-1 || o.Kind != find || ops[i-1].Input.(Paired).Where != o.Where || ops[i+1].Input.(Paired).Where != o.Where {
				text = append(text, "\n  "+o.String())
			}
		}
		err = errors.Join(err, fmt.Errorf("the history of %s, a face of a merge, is %s, not linearizable:%s", face, result, strings.Join(text, "")))
	}
	return err
}
