package metafsm

import (
	"cmp"
	"slices"

	"facet/internal/id"
)

// Replan returns the voters that the shards of a map should have on the given seats. Each
// shard gets as many voters as replicas says, or as there are seats that are not away.
// Replan moves as few votes as it can. A vote moves:
//
//   - when its member has no seat; heirs may name the member that gets the vote;
//   - when another voter of the shard lies in its zone, and a better zone has a seat;
//   - when its member has at least two votes more than another.
//
// A missed member keeps its votes and gets no more. A member that is away keeps its votes
// until another can take them, so that a shard never loses a voter for nothing.
//
// When replicas falls, votes end: those of members that are away or missed first, then those
// that share a zone, then those of members with the most votes. No vote moves for that.
//
// Replan returns its own result unchanged when the seats are the same.
func Replan(now []ShardVoters, seats []Seat, replicas int, heirs map[id.Member]id.Member) []ShardVoters {
	p := newPlan(seats, len(now), replicas)
	p.replicas = max(1, min(replicas, p.present()))
	if p.present() == 0 {
		return cloneVoters(now)
	}
	p.most = (len(now)*p.replicas + p.present() - 1) / p.present()
	for s, v := range now {
		p.keep(s, v, heirs)
	}
	had := make([][]int, len(now))
	for s := range now {
		p.choose(s)
		had[s] = slices.Clone(p.voters[s])
		p.shed(s, replicas)
	}
	for p.levelAmong(had) {
		continue // each call lowers the sum of the squares of the loads
	}
	for s := range now {
		p.spread(s)
	}
	for p.level() {
		continue
	}
	leaders := p.relead(now)
	out := cloneVoters(now)
	for s := range out {
		if voters := p.leaderFirst(s, leaders[s]); !slices.Equal(voters, out[s].Voters) {
			out[s].Voters = voters
		}
	}
	return out
}

// Next returns the map that follows now on the way to plan. At most limit shards move at a
// time. Shards with a voter that is away or has no seat move first. The order of voters,
// and with it the preferred leader, changes at once. A move gets a new goal when its goal has
// another number of voters than the plan, or a member that is away or has no seat. A member
// stays a holder until the end of the move. A move with a new goal has From, and no Began: the caller sets it.
// changed reports whether next differs from now.
func Next(now, plan []ShardVoters, seats []Seat, limit int) (next []ShardVoters, changed bool) {
	present := map[id.Member]bool{}
	for _, s := range seats {
		present[s.Member] = !s.Away
	}
	missing := func(v ShardVoters) int {
		n := 0
		for _, m := range v.Voters {
			if !present[m] {
				n++
			}
		}
		return n
	}
	next = cloneVoters(now)
	order := make([]int, len(now))
	moving := 0
	for i := range order {
		order[i] = i
		if now[i].Moving {
			moving++
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(missing(now[b]), missing(now[a])) })
	for _, i := range order {
		to := &next[i]
		switch same := sameMembers(to.Voters, plan[i].Voters); {
		case same && slices.Equal(to.Voters, plan[i].Voters):
			continue
		case same:
		case to.Moving && missing(*to) == 0 && len(to.Voters) == len(plan[i].Voters), !to.Moving && moving >= limit:
			continue
		default:
			if !to.Moving {
				moving++
				to.From = slices.Clone(to.Voters)
			}
			to.Began = 0
			to.Leaving = slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(to.Holders()))), func(m id.Member) bool {
				return slices.Contains(plan[i].Voters, m)
			})
			to.Moving = true
		}
		to.Voters = slices.Clone(plan[i].Voters)
		changed = true
	}
	return next, changed
}

func sameMembers(a, b []id.Member) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// keep lets the voters of a shard that have seats keep their votes. The heirs of the other
// voters get theirs.
func (p *plan) keep(shard int, v ShardVoters, heirs map[id.Member]id.Member) {
	take := func(m id.Member) bool {
		i := slices.IndexFunc(p.seats, func(s Seat) bool { return s.Member == m })
		if i >= 0 && !slices.Contains(p.voters[shard], i) {
			p.voters[shard] = append(p.voters[shard], i)
			p.load[i]++
		}
		return i >= 0
	}
	var lost []id.Member
	for _, m := range v.Voters {
		if !take(m) {
			lost = append(lost, m)
		}
	}
	for _, m := range lost {
		if heir, ok := heirs[m]; ok {
			take(heir)
		}
	}
}

// present counts the seats that are not away.
func (p *plan) present() int { return p.notAway(p.everyone()) }

// voting counts the voters of a shard that are not away.
func (p *plan) voting(shard int) int { return p.notAway(p.voters[shard]) }

func (p *plan) notAway(members []int) int {
	n := 0
	for _, m := range members {
		if !p.seats[m].Away {
			n++
		}
	}
	return n
}

// shed removes voters of a shard until limit are left. It removes members that are away
// first, then missed members, then members that share a zone, then members with the most
// votes.
func (p *plan) shed(shard, limit int) {
	for len(p.voters[shard]) > limit {
		worst, worstCost := -1, [3]int{}
		for _, m := range p.ranked(weightVoter, shard, p.voters[shard]) {
			cost := [3]int{0, p.inZone(shard, m), p.load[m]}
			switch {
			case p.seats[m].Away:
				cost[0] = 2
			case p.seats[m].Missed:
				cost[0] = 1
			}
			if worst < 0 || slices.Compare(cost[:], worstCost[:]) >= 0 {
				worst, worstCost = m, cost
			}
		}
		p.voters[shard] = slices.DeleteFunc(p.voters[shard], func(m int) bool { return m == worst })
		p.load[worst]--
	}
}

// levelAmong takes one vote from a seat and gives one to a seat that has at least two
// fewer. Votes go only to members that had one in the same shard before shed, because they
// have its data. It finds a chain of shards that each exchange a voter for that, and returns
// false if there is none.
func (p *plan) levelAmong(had [][]int) bool {
	var shed []int
	for s := range had {
		if len(had[s]) > len(p.voters[s]) {
			shed = append(shed, s)
		}
	}
	byLoad := p.everyone()
	slices.SortStableFunc(byLoad, func(a, b int) int { return cmp.Compare(p.load[b], p.load[a]) })
	for _, from := range byLoad {
		by := map[int]exchange{from: {}}
		for queue := []int{from}; len(queue) > 0; queue = queue[1:] {
			for _, s := range shed {
				for _, to := range p.exchanges(s, queue[0], had[s]) {
					if _, reached := by[to]; reached {
						continue
					}
					by[to] = exchange{s, queue[0]}
					if p.load[to]+2 > p.load[from] {
						queue = append(queue, to)
						continue
					}
					for at := to; at != from; at = by[at].from {
						p.move(by[at].shard, by[at].from, at)
					}
					return true
				}
			}
		}
	}
	return false
}

// exchange is a change of one voter of a shard; from loses the vote.
type exchange struct{ shard, from int }

// exchanges returns the members among had that may get the vote of from in a shard without
// crowding a zone.
func (p *plan) exchanges(shard, from int, had []int) []int {
	if !slices.Contains(p.voters[shard], from) {
		return nil
	}
	return slices.DeleteFunc(p.ranked(weightVoter, shard, had), func(to int) bool {
		return !p.seats[to].free() || slices.Contains(p.voters[shard], to) || p.crowd(shard, from, to) > p.inZone(shard, from)
	})
}

// spread moves votes of a shard to zones that hold fewer of them.
func (p *plan) spread(shard int) {
	for {
		from, to, gain := -1, -1, 0
		for _, v := range p.voters[shard] {
			if !p.seats[v].free() || p.inZone(shard, v) == 0 {
				continue
			}
			for _, m := range p.ranked(weightVoter, shard, p.everyone()) {
				if !p.seats[m].free() || slices.Contains(p.voters[shard], m) || p.seats[m].Zone == p.seats[v].Zone {
					continue
				}
				better := p.inZone(shard, v) - p.inZone(shard, m)
				if better > gain || better == gain && gain > 0 && p.load[m] < p.load[to] {
					from, to, gain = v, m, better
				}
			}
		}
		if gain == 0 {
			return
		}
		p.move(shard, from, to)
	}
}

// relead chooses leaders. A present leader stays if it votes and is not away. Then relead
// changes as few leaders as it takes to make the numbers even.
func (p *plan) relead(now []ShardVoters) []int {
	l := leading{plan: p, leader: make([]int, len(now)), led: make([]int, len(p.seats))}
	for s, v := range now {
		l.leader[s] = -1
		i := slices.IndexFunc(p.voters[s], func(m int) bool { return len(v.Voters) > 0 && p.seats[m].Member == v.Voters[0] })
		if i >= 0 && !p.seats[p.voters[s][i]].Away {
			l.leader[s] = p.voters[s][i]
			l.led[l.leader[s]]++
		}
	}
	for s := range now {
		if l.leader[s] >= 0 {
			continue
		}
		wishes := p.ranked(weightLeader, s, p.voters[s])
		l.leader[s] = slices.MinFunc(wishes, func(a, b int) int {
			if p.seats[a].Away != p.seats[b].Away {
				return map[bool]int{true: 1, false: -1}[p.seats[a].Away]
			}
			return cmp.Compare(l.led[a], l.led[b])
		})
		l.led[l.leader[s]]++
	}
	for l.level() {
		continue // each call lowers the sum of the squares of the numbers led
	}
	return l.leader
}

// leading is an unfinished choice of leaders.
type leading struct {
	*plan
	leader []int // by shard
	led    []int // by seat
}

// level lets one seat lead a shard less, and a seat that leads at least two fewer lead one
// more. It finds a chain of shards that each change their leader for that. It returns
// false if there is no such chain.
func (l *leading) level() bool {
	byLed := l.everyone()
	slices.SortStableFunc(byLed, func(a, b int) int { return cmp.Compare(l.led[b], l.led[a]) })
	shards := make([][]int, len(l.seats)) // by leader
	for s, m := range l.leader {
		shards[m] = append(shards[m], s)
	}
	for _, from := range byLed {
		by := map[int]int{from: -1} // the shard by which a seat was reached
		queue := []int{from}
		for len(queue) > 0 {
			at := queue[0]
			queue = queue[1:]
			for _, s := range shards[at] {
				for _, to := range l.ranked(weightLeader, s, l.voters[s]) {
					if _, reached := by[to]; reached || l.seats[to].Away {
						continue
					}
					by[to] = s
					if l.led[to]+2 <= l.led[from] {
						l.pass(by, from, to)
						return true
					}
					queue = append(queue, to)
				}
			}
		}
	}
	return false
}

// pass changes the leaders of the chain of shards between two seats.
func (l *leading) pass(by map[int]int, from, to int) {
	l.led[from]--
	l.led[to]++
	for at := to; at != from; {
		s := by[at]
		at, l.leader[s] = l.leader[s], at
	}
}
