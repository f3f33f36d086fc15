package backup

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"facet/internal/id"
	"facet/node/replicas"
	"facet/raftfsm"
	"facet/raftfsm/shardfsm"
	"facet/shard/kernel"
)

// LostWrites are the writes of subjects in the log of a replica that was set aside, because
// other members have replaced its entries.
type LostWrites struct {
	Shard id.Shard `json:"shard"`
	// Commit is the last entry that the replica knew to be committed. Later writes may never
	// have been acknowledged.
	Commit uint64      `json:"commit"`
	Writes []LostWrite `json:"writes"`
	// Others is the number of other commands: slots, jobs, fences and checkpoints.
	Others int `json:"others"`
}

// LostWrite is one write of a subject.
type LostWrite struct {
	Index   uint64     `json:"index"`
	What    string     `json:"what"`
	Gallery id.Gallery `json:"gallery"`
	Subject id.Subject `json:"subject"`
	Event   id.Event   `json:"event,omitzero"`
	Time    time.Time  `json:"time"`
	Command []byte     `json:"-"` // for router.PutBack
}

// ReadLostWrites reads the folder of a shard's replica that was set aside. from is the first
// entry to list; 0: the first one that was seen to differ.
func ReadLostWrites(folder string, from uint64) (w LostWrites, err error) {
	if n, _ := fmt.Sscanf(filepath.Base(folder), "group-%d.rewritten-", &w.Shard); n != 1 || w.Shard == id.Meta {
		return w, fmt.Errorf("%s is not the folder of a shard with replaced entries", filepath.Base(folder))
	}
	why, err := replicas.Rewritten(folder)
	if err != nil {
		return w, err
	}
	if w.Commit = why.Commit; from == 0 {
		from = why.From
	}
	s, err := raftfsm.OpenStopped(raftfsm.Config{Group: w.Shard, Self: "set aside", Dir: folder, Prepared: true}, shardfsm.New(nil, kernel.NewArena(0)))
	if err != nil {
		return w, err
	}
	pending := map[id.Operation]LostWrite{}
	err = s.Commands(func(index uint64, cmd []byte) error {
		l, ok := lostWrite(pending, cmd)
		l.Index = index
		switch {
		case index < from:
		case ok:
			w.Writes = append(w.Writes, l)
		default:
			w.Others++
		}
		return nil
	})
	return w, errors.Join(err, s.Close())
}

// lostWrite describes a command. ok is false if it is no write of a subject. A guarded
// registration is one when it becomes active; until then it is in pending.
func lostWrite(pending map[id.Operation]LostWrite, cmd []byte) (l LostWrite, ok bool) {
	event := func(what string, w shardfsm.EventWrite) LostWrite {
		return LostWrite{What: what, Gallery: w.Gallery, Subject: w.Subject, Event: w.Event, Time: time.UnixMilli(w.Time).UTC(), Command: cmd}
	}
	enrolment := func(what string, c shardfsm.Register) (LostWrite, bool) {
		l := event(what, c.EventWrite)
		if c.Pending {
			pending[c.Op] = l
		}
		return l, !c.Pending
	}
	if c, err := shardfsm.RegisterOp.Decode(cmd); err == nil {
		return enrolment("registered", c)
	}
	if c, err := shardfsm.AddEventOp.Decode(cmd); err == nil {
		return enrolment("event added", c.Register)
	}
	if c, err := shardfsm.ActivateOp.Decode(cmd); err == nil {
		l, ok := pending[c.Op]
		delete(pending, c.Op)
		return l, ok
	}
	if c, err := shardfsm.ReplaceEventOp.Decode(cmd); err == nil {
		return event("updated", c.EventWrite), true
	}
	if c, err := shardfsm.RemoveEventOp.Decode(cmd); err == nil {
		return event("event removed", c.EventWrite), true
	}
	c, err := shardfsm.UnregisterOp.Decode(cmd)
	return LostWrite{What: "deleted", Gallery: c.Gallery, Subject: c.Subject, Time: time.UnixMilli(c.Time).UTC(), Command: cmd}, err == nil
}
