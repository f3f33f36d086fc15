package transport

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// A member that stands for election, or has left it to another, keeps to that when it is asked,
// or asks, without the name of the lost leader. The loss of a new leader ends both.
func TestPromisesHoldForUnknownLeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const old, next, unknown = raft.ServerID("old"), raft.ServerID("next"), raft.ServerID("")
		long, short := vote{member: "a", last: 9}, vote{member: "b", last: 8}
		l := &leaderLoss{t: &Transport{}}
		if !l.stand(old) || l.yield(unknown, short, long) {
			t.Error("a member left its own election to another one")
		}
		if !l.yield(next, long, short) || l.stand(unknown) {
			t.Error("a member stood in an election that it had left to another one")
		}
		time.Sleep(electionTime)
		if !l.stand(unknown) {
			t.Error("a promise does not end")
		}
	})
}

// Raft gets the message that starts an election only while the member follows: a leader would
// cease to lead.
func TestWinnerGetsNoElection(t *testing.T) {
	t.Parallel()
	for _, won := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := &leaderLoss{t: &Transport{out: make(chan raft.RPC), done: make(chan struct{})}}
			begin := time.Now()
			read := func() bool { return time.Since(begin) >= 5*electInterval } // raft is busy until then
			go l.elect(func() bool { return !won || !read() })
			time.Sleep(5*electInterval + electInterval/2)
			select {
			case rpc := <-l.t.out:
				if _, offer := rpc.Command.(*raft.TimeoutNowRequest); won || !offer {
					t.Errorf("a member that won an election: %t, was sent %T", won, rpc.Command)
				}
			case <-time.After(electTries * electInterval):
				if !won {
					t.Error("a member that follows was sent nothing")
				}
			}
		})
	}
}
