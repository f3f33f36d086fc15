package transport

import (
	"github.com/hashicorp/raft"

	"facet/raftfsm/health"
)

// deliver hands rpc to raft's main goroutine. A message that is dropped needs no answer,
// because its stream is closed.
func (t *Transport) deliver(rpc raft.RPC) {
	raises := raisesTerm(t.raft.Load(), rpc.Command)
	if t.health.Failed() != nil { // after the term: raft takes one that is not on the disk only after Fail
		rpc.Respond(nil, health.ErrClosed)
		return
	}
	if raises {
		answers := make(chan raft.RPCResponse, 1)
		to := rpc.RespChan
		t.wg.Go(func() { t.passOn(answers, to) })
		rpc.RespChan = answers
	}
	select {
	case t.out <- rpc:
	case <-t.done:
	}
}

// raisesTerm reports whether raft writes the term of a message before it answers.
func raisesTerm(r *raft.Raft, command any) bool {
	q, ok := command.(*raft.AppendEntriesRequest)
	return ok && r != nil && q.Term > r.CurrentTerm()
}

// passOn passes an answer on, unless the disk has failed: raft answers in a term that it could not write, too
// (logstore.Stable).
func (t *Transport) passOn(answers <-chan raft.RPCResponse, to chan<- raft.RPCResponse) {
	select {
	case a := <-answers:
		if t.health.Failed() != nil {
			a = raft.RPCResponse{Error: health.ErrClosed}
		}
		to <- a
	case <-t.done:
	}
}
