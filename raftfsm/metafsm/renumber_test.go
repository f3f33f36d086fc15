package metafsm

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// evenVotes fails unless the numbers of votes and of leaderships differ by at most one.
func evenVotes(t *testing.T, what string, seats []Seat, plan []ShardVoters) {
	t.Helper()
	votes, leads := counts(seats, plan)
	if a, b := spreadOf(seats, votes), spreadOf(seats, leads); a > 1 || b > 1 {
		t.Errorf("%s: votes differ by %d, leaderships by %d", what, a, b)
	}
}

// A lower number ends votes and moves none: no data is copied for it.
func TestLowerNumberCopiesNothing(t *testing.T) {
	t.Parallel()
	for n := 3; n <= 9; n++ {
		for _, zones := range [][]string{nil, {"a", "b", "c"}, {"a", "b", "c", "d", "e"}} {
			seats := testSeats(n, zones...)
			now := Place(seats, 16, min(5, n))
			for _, replicas := range []int{3, 1} {
				what := fmt.Sprintf("%d seats, zones %v, to %d", n, zones, replicas)
				plan := Replan(now, seats, replicas, nil)
				sound(t, seats, plan, replicas)
				if moved := added(now, plan); moved > 0 {
					t.Errorf("%s: %d votes move", what, moved)
				}
				if len(zones) == 0 {
					evenVotes(t, what, seats, plan)
				}
				now = plan
			}
		}
	}
}

// keepsHolders fails if a step of the map starts more than limit moves, or lets a member
// erase its replica before the move's end.
func keepsHolders(t *testing.T, now, next []ShardVoters, limit int) {
	t.Helper()
	moving, started := 0, 0
	for i := range next {
		if now[i].Moving {
			moving++
		} else if next[i].Moving {
			started++
		}
		for _, m := range now[i].Holders() {
			if !slices.Contains(next[i].Holders(), m) {
				t.Fatalf("shard %d: %s may erase its replica: %+v became %+v", next[i].Shard, m, now[i], next[i])
			}
		}
		if v := next[i].Voters; len(v) == 0 || len(slices.Compact(slices.Sorted(slices.Values(v)))) != len(v) {
			t.Fatalf("shard %d has voters %v", next[i].Shard, v)
		}
	}
	if started > 0 && moving+started > limit {
		t.Fatalf("%d shards move at once", moving+started)
	}
}

// The number and the nodes change at random, also during moves.
func TestAnyNumberIsReachedInFewSteps(t *testing.T) {
	t.Parallel()
	const shards, limit = 8, 2
	r := rand.New(rand.NewPCG(13, 1))
	for range 150 {
		seats := testSeats(1+r.IntN(8), []string{"", "a", "b", "c"}[:1+r.IntN(4)]...)
		now := Place(seats, shards, 1+r.IntN(5))
		for range 8 {
			number := []int{1, 3, 5}[r.IntN(3)]
			for i := range seats {
				seats[i].Missed = i > 0 && r.IntN(6) == 0
				seats[i].Away = seats[i].Missed && r.IntN(2) == 0
			}
			pause := r.IntN(shards) // then the number changes again
			for step := 0; ; step++ {
				if step > shards+2 {
					t.Fatalf("number %d is not reached in %d steps: %+v", number, step, now)
				}
				next, changed := Next(now, Replan(now, seats, number, nil), seats, limit)
				keepsHolders(t, now, next, limit)
				now = next
				if step == pause {
					break
				}
				if arrive(now, seats) == 0 && !changed {
					reached(t, now, seats, number)
					break
				}
			}
		}
	}
}

// arrive ends the moves whose members all answer and returns their number.
func arrive(now []ShardVoters, seats []Seat) (count int) {
	for i, v := range now {
		silent := slices.ContainsFunc(seats, func(s Seat) bool { return s.Missed && slices.Contains(v.Voters, s.Member) })
		if v.Moving && !silent {
			now[i].Moving, now[i].Leaving = false, nil
			count++
		}
	}
	return count
}

// reached fails unless each shard has as many voters as it should. Moves that can't end
// keep others from starting.
func reached(t *testing.T, now []ShardVoters, seats []Seat, number int) {
	t.Helper()
	if slices.ContainsFunc(now, func(v ShardVoters) bool { return v.Moving }) {
		return
	}
	free := 0
	for _, s := range seats {
		if s.free() {
			free++
		}
	}
	for _, v := range now {
		if n := len(v.Voters); n > number || n < min(number, free) {
			t.Fatalf("shard %d has %d voters, want %d on %d free seats: %+v", v.Shard, n, number, free, v)
		}
	}
}

// A member that does not answer does not stay as the only one.
func TestLowerNumberKeepsMembersThatAnswer(t *testing.T) {
	t.Parallel()
	seats := testSeats(5)
	now := Place(seats, 16, 3)
	seats[2].Missed = true
	for _, v := range Replan(now, seats, 1, nil) {
		if v.Voters[0] == seats[2].Member {
			t.Errorf("shard %d is left to a member that is missed", v.Shard)
		}
	}
}

// An operator who changes the number back ends a move that can't end by itself.
func TestChangedNumberGivesMoveNewGoal(t *testing.T) {
	t.Parallel()
	seats := testSeats(5)
	was := Place(seats, 1, 3)
	now, _ := Next(was, Replan(was, seats, 5, nil), seats, 1)
	if len(now[0].Voters) != 5 || !now[0].Moving {
		t.Fatalf("five are wanted: %+v", now[0])
	}
	next, changed := Next(now, Replan(now, seats, 3, nil), seats, 1)
	if !changed || len(next[0].Voters) != 3 || len(next[0].Leaving) != 2 || !next[0].Moving {
		t.Errorf("three are wanted again: %+v", next[0])
	}
	keepsHolders(t, now, next, 1)
	for _, m := range was[0].Voters {
		if !slices.Contains(next[0].Holders(), m) {
			t.Errorf("%s may erase its replica", m)
		}
	}
}
