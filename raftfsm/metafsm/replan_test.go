package metafsm

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"facet/internal/id"
)

// added counts the votes of after that before does not have.
func added(before, after []ShardVoters) int {
	n := 0
	for i := range after {
		for _, m := range after[i].Voters {
			if !slices.Contains(before[i].Voters, m) {
				n++
			}
		}
	}
	return n
}

// spreadOf returns the difference between the most and the fewest, among the seats that are
// not away.
func spreadOf(seats []Seat, of []int) int {
	var present []int
	for i, n := range of {
		if !seats[i].Away {
			present = append(present, n)
		}
	}
	return slices.Max(present) - slices.Min(present)
}

// sound fails unless each shard has the right number of voters and none twice.
func sound(t *testing.T, seats []Seat, plan []ShardVoters, replicas int) {
	t.Helper()
	present := map[id.Member]bool{}
	for _, s := range seats {
		present[s.Member] = !s.Away
	}
	want := 0
	for _, here := range present {
		if here {
			want++
		}
	}
	want = min(want, replicas)
	for _, v := range plan {
		n := 0
		for _, m := range v.Voters {
			if present[m] {
				n++
			}
		}
		distinct := slices.Compact(slices.Sorted(slices.Values(v.Voters)))
		if n < want || len(distinct) != len(v.Voters) || len(v.Voters) > max(replicas, want) {
			t.Fatalf("shard %d has voters %v, %d of them present, want %d of at most %d", v.Shard, v.Voters, n, want, replicas)
		}
	}
}

func TestReplanIsIdempotent(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(11, 1))
	for range 60 {
		seats := testSeats(1+r.IntN(9), []string{"", "a", "b", "c"}[:1+r.IntN(4)]...)
		now := Place(seats, 16, 1+r.IntN(5))
		for range 6 {
			replicas := 1 + r.IntN(5)
			changed := slices.DeleteFunc(slices.Clone(seats), func(Seat) bool { return r.IntN(4) == 0 })
			for i := range changed {
				changed[i].Away = r.IntN(5) == 0
			}
			if len(changed) == 0 {
				continue
			}
			plan := Replan(now, changed, replicas, nil)
			if diff := cmp.Diff(plan, Replan(plan, changed, replicas, nil)); diff != "" {
				t.Fatalf("seats %v, %d replicas: a second plan differs (-first +second):\n%s", changed, replicas, diff)
			}
			now = plan
		}
	}
}

func TestPlanOfBalancedMapIsUnchanged(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 9; n++ {
		seats := testSeats(n, "a", "b", "c")
		now := Place(seats, 16, 3)
		if diff := cmp.Diff(now, Replan(now, seats, 3, nil)); diff != "" {
			t.Errorf("%d seats (-now +plan):\n%s", n, diff)
		}
	}
}

func TestAwayMemberKeepsVotesUntilReplaced(t *testing.T) {
	t.Parallel()
	seats := testSeats(3)
	now := Place(seats, 16, 3)
	seats[1].Away = true
	for _, v := range Replan(now, seats, 3, nil) {
		if len(v.Voters) != 3 {
			t.Errorf("shard %d of three seats, one away: %v", v.Shard, v.Voters)
		}
		if v.Voters[0] == seats[1].Member {
			t.Errorf("shard %d is to be led by a member that is away", v.Shard)
		}
	}
	seats = append(seats, testSeats(4)[3])
	plan := Replan(now, seats, 3, nil)
	sound(t, seats, plan, 3)
	for _, v := range plan {
		if slices.Contains(v.Voters, seats[1].Member) {
			t.Errorf("shard %d keeps a member that is away though another can vote: %v", v.Shard, v.Voters)
		}
	}
}

func TestMissedMemberKeepsItsVotesOnly(t *testing.T) {
	t.Parallel()
	seats := testSeats(5)
	now := Place(seats, 16, 3)
	seats[1].Missed = true
	if diff := cmp.Diff(now, Replan(now, seats, 3, nil)); diff != "" {
		t.Errorf("a member was missed (-now +plan):\n%s", diff)
	}
	left := slices.Delete(slices.Clone(seats), 3, 4)
	plan := Replan(now, left, 3, nil)
	sound(t, left, plan, 3)
	for i := range now {
		if had, has := slices.Contains(now[i].Voters, seats[1].Member), slices.Contains(plan[i].Voters, seats[1].Member); had != has {
			t.Errorf("shard %d: %v became %v", now[i].Shard, now[i].Voters, plan[i].Voters)
		}
	}
	for i := range left {
		left[i].Missed = true
	}
	Replan(now, left, 3, nil) // nobody can take a vote: the call must return
}

func TestMemberWithoutSeatLosesVotes(t *testing.T) {
	t.Parallel()
	seats := testSeats(4)
	now := Place(seats, 16, 3)
	gone := seats[2].Member
	left := slices.Delete(slices.Clone(seats), 2, 3)
	plan := Replan(now, left, 3, nil)
	sound(t, left, plan, 3)
	had := 0
	for i := range now {
		if slices.Contains(now[i].Voters, gone) {
			had++
		}
	}
	if n := added(now, plan); n != had {
		t.Errorf("%d votes were given, %d were lost", n, had)
	}
	// Two seats are too few for three replicas, and the operator's order counts.
	for _, v := range Replan(plan, left[:2], 3, nil) {
		if len(v.Voters) != 2 {
			t.Errorf("shard %d on two seats: %v", v.Shard, v.Voters)
		}
	}
}

func TestHeirTakesOverVotes(t *testing.T) {
	t.Parallel()
	seats := testSeats(6)
	now := Place(seats[:5], 20, 3)
	gone, heir := seats[0].Member, seats[5].Member
	left := seats[1:]
	plan := Replan(now, left, 3, map[id.Member]id.Member{gone: heir})
	sound(t, left, plan, 3)
	for i := range now {
		if slices.Contains(now[i].Voters, gone) != slices.Contains(plan[i].Voters, heir) {
			t.Errorf("shard %d: %v became %v", now[i].Shard, now[i].Voters, plan[i].Voters)
		}
	}
}

func TestLaterZoneIsUsed(t *testing.T) {
	t.Parallel()
	seats := testSeats(4, "a", "b")
	now := Place(seats, 16, 3)
	more := append(slices.Clone(seats), Seat{Member: testSeats(5)[4].Member, Zone: "c"})
	plan := Replan(now, more, 3, nil)
	sound(t, more, plan, 3)
	for _, v := range plan {
		if !slices.Contains(v.Voters, more[4].Member) {
			t.Errorf("shard %d has no voter in the third zone: %v", v.Shard, v.Voters)
		}
	}
}

func TestMovesAreLimitedWorstFirst(t *testing.T) {
	t.Parallel()
	seats := testSeats(5)
	now := Place(seats[:4], 16, 3)
	seats[0].Away = true
	plan := Replan(now, seats, 3, nil)
	steps := 0
	for at := now; ; steps++ {
		next, changed := Next(at, plan, seats, 2)
		if !changed {
			if added(at, plan) > 0 {
				t.Fatalf("nothing moves though the plan is not reached: %+v", at)
			}
			break
		}
		moving := 0
		for i := range next {
			if !next[i].Moving {
				continue
			}
			moving++
			if slices.Contains(at[i].Voters, seats[0].Member) != slices.Contains(next[i].Leaving, seats[0].Member) {
				t.Errorf("shard %d leaves %v of %v", next[i].Shard, next[i].Leaving, at[i].Voters)
			}
			if worse := slices.IndexFunc(next, func(v ShardVoters) bool { return slices.Contains(v.Voters, seats[0].Member) }); worse >= 0 && len(next[i].Leaving) > 0 &&
				!slices.Contains(next[i].Leaving, seats[0].Member) {
				t.Errorf("shard %d moves before shard %d, which has lost a voter", next[i].Shard, next[worse].Shard)
			}
			next[i].Moving, next[i].Leaving = false, nil // it has arrived
		}
		if moving > 2 {
			t.Fatalf("%d shards move at once", moving)
		}
		if steps > 40 {
			t.Fatal("no end")
		}
		at = next
	}
	if steps == 0 {
		t.Error("nothing moved")
	}
}

func TestMoveToLostMemberGetsNewGoal(t *testing.T) {
	t.Parallel()
	seats := testSeats(5)
	now := Place(seats[:3], 1, 3)
	now[0].Voters[2], now[0].Leaving, now[0].Moving = seats[3].Member, []id.Member{now[0].Voters[2]}, true
	left := append(slices.Clone(seats[:3]), seats[4]) // the goal is gone
	plan := Replan(now, left, 3, nil)
	next, changed := Next(now, plan, left, 1)
	if !changed || slices.Contains(next[0].Voters, seats[3].Member) || !slices.Contains(next[0].Leaving, seats[3].Member) {
		t.Errorf("next is %+v", next[0])
	}
}

// TestLargePlanStaysSteady simulates nodes that join, leave for good or are away for a
// while.
func TestLargePlanStaysSteady(t *testing.T) {
	t.Parallel()
	const shards, replicas = 1000, 3
	r := rand.New(rand.NewPCG(12, 1))
	member := func(i int) Seat {
		return Seat{Member: id.NewMember(id.Node{UUID: id.UUID{byte(i >> 8), byte(i), 1}}, 1), Zone: fmt.Sprint("zone ", i%5)}
	}
	var seats []Seat
	for i := range 100 {
		seats = append(seats, member(i))
	}
	now := Place(seats, shards, replicas)
	fresh := 100
	for round := range 8 {
		before := slices.Clone(seats)
		lost := 0 // votes that have to move
		switch round % 4 {
		case 0: // one joins
			seats = append(seats, member(fresh))
			fresh++
			lost = shards * replicas / len(seats)
		case 1: // one goes for good
			gone := r.IntN(len(seats))
			votes, _ := counts(before, now)
			lost = votes[gone]
			seats = slices.Delete(slices.Clone(seats), gone, gone+1)
		case 2: // one is away
			seats = slices.Clone(seats)
			at := r.IntN(len(seats))
			votes, _ := counts(before, now)
			lost = votes[at]
			seats[at].Away = true
		case 3: // and comes back
			seats = slices.Clone(seats)
			for i := range seats {
				seats[i].Away = false
			}
			lost = shards * replicas / len(seats)
		}
		plan := Replan(now, seats, replicas, nil)
		sound(t, seats, plan, replicas)
		votes, leads := counts(seats, plan)
		if a, b := spreadOf(seats, votes), spreadOf(seats, leads); a > 1 || b > 1 {
			t.Errorf("round %d: votes differ by %d, leaderships by %d", round, a, b)
		}
		if moved := added(now, plan); moved > lost+len(seats)/10+2 {
			t.Errorf("round %d: %d of %d votes move, %d have to", round, moved, shards*replicas, lost)
		}
		if diff := cmp.Diff(plan, Replan(plan, seats, replicas, nil)); diff != "" {
			t.Fatalf("round %d oscillates:\n%s", round, diff)
		}
		now = plan
	}
}
