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
