package metafsm

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"facet/internal/id"
)

// SlotsPerShard is the number of slots for which a gallery gets one shard, if the
// founding set no other number.
const SlotsPerShard = 50_000

// The purposes of weights. A changed purpose moves data.
const (
	weightShard  = "facet/shards/1"
	weightVoter  = "facet/voters/1"
	weightLeader = "facet/leader/1"
)

// weight returns the hash of rendezvous hashing (Thaler and Ravishankar 1998), which
// assigns to each a the b with the highest weights.
func weight(purpose string, a, b []byte) uint64 {
	h := sha256.New()
	h.Write([]byte(purpose))
	h.Write([]byte{byte(len(a))})
	h.Write(a)
	h.Write(b)
	return binary.BigEndian.Uint64(h.Sum(nil))
}

func shardBytes(s id.Shard) []byte { return binary.BigEndian.AppendUint16(nil, uint16(s)) }

// ShardCount returns the number of shards for a gallery of size slots: one for each
// c.SlotsPerShard, at least one.
func (c Cluster) ShardCount(size uint32) int {
	per := uint64(c.SlotsPerShard)
	if per == 0 {
		per = SlotsPerShard
	}
	return max(1, min(c.Shards, int((uint64(size)+per-1)/per)))
}

// ShardsOf returns the shards of a gallery: count of the numbers 1 … shards. The list for
// a larger count starts with the list for a smaller one.
func ShardsOf(g id.Gallery, count, shards int) []id.Shard {
	type weighted struct {
		shard  id.Shard
		weight uint64
	}
	all := make([]weighted, shards)
	for i := range all {
		s := id.Shard(i + 1)
		all[i] = weighted{s, weight(weightShard, g.UUID[:], shardBytes(s))}
	}
	slices.SortFunc(all, func(a, b weighted) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.shard, b.shard))
	})
	out := make([]id.Shard, max(0, min(count, shards)))
	for i := range out {
		out[i] = all[i].shard
	}
	return out
}

// Jump returns a place in 0 … n−1 for hash. When n grows by one, one hash in n+1 moves,
// and it moves to the new place. This is the jump consistent hash (Lamping and Veach 2014,
// "A Fast, Minimal Memory, Consistent Hash Algorithm"), with integers for the paper's
// floating point. n is 1 to 2³¹.
func Jump(hash uint64, n int) int {
	place, next := int64(-1), int64(0)
	for next < int64(n) {
		place = next
		hash = hash*2862933555777941757 + 1
		next = int64((uint64(place+1) << 31) / (hash>>33 + 1))
	}
	return int(place)
}

// Seat is a member that can hold replicas. Members of one zone tend to fail together. A
// member with an empty zone has a zone of its own.
type Seat struct {
	Member id.Member
	Zone   string
	// Missed reports that the member does not answer at present. Replan gives it no more
	// votes. Away reports that it has not answered for long. It keeps its votes only
	// until another member can take them.
	Missed, Away bool
}

// free reports whether the seat may get a vote.
func (s Seat) free() bool { return !s.Missed && !s.Away }

// Place returns the voters of each of the shards 1 … shards, the preferred leader first,
// by rendezvous hashing with bounded load. The voters of one shard lie in as many zones as
// possible. As far as the zones allow, the numbers of shards in which two members vote
// differ by at most one. The same holds for the numbers of shards that they lead. With
// fewer seats than replicas every seat votes everywhere. The order of seats has no effect.
func Place(seats []Seat, shards, replicas int) []ShardVoters {
	p := newPlan(seats, shards, max(1, min(replicas, len(seats))))
	if len(seats) == 0 {
		return nil
	}
	for s := range p.voters {
		p.choose(s)
	}
	for p.level() {
		continue // each call lowers the sum of the squares of the loads
	}
	leaders := p.lead()
	out := make([]ShardVoters, shards)
	for s := range out {
		out[s] = ShardVoters{Shard: id.Shard(s + 1), Voters: p.leaderFirst(s, leaders[s])}
	}
	return out
}

// leaderFirst returns the voters of a shard: its leader, then the others by weight.
func (p *plan) leaderFirst(shard, leader int) []id.Member {
	voters := []id.Member{p.seats[leader].Member}
	for _, m := range p.ranked(weightVoter, shard, p.voters[shard]) {
		if m != leader {
			voters = append(voters, p.seats[m].Member)
		}
	}
	return voters
}

// plan is an unfinished placement. Seats and shards are indices from 0.
type plan struct {
	seats    []Seat // in order of members
	replicas int
	most     int // the most votes that choose prefers for a seat: the average, rounded up
	voters   [][]int
	load     []int
	// weights of the seats by purpose and shard, computed at the first use.
	weights map[string][][]uint64
}

func newPlan(seats []Seat, shards, replicas int) *plan {
	p := &plan{
		seats:    slices.Clone(seats),
		replicas: replicas,
		voters:   make([][]int, shards),
		load:     make([]int, len(seats)),
		weights:  map[string][][]uint64{weightVoter: make([][]uint64, shards), weightLeader: make([][]uint64, shards)},
	}
	slices.SortFunc(p.seats, func(a, b Seat) int { return cmp.Compare(a.Member, b.Member) })
	for i := range p.seats {
		if p.seats[i].Zone == "" {
			p.seats[i].Zone = "\x00" + string(p.seats[i].Member)
		}
	}
	if len(seats) > 0 {
		p.most = (shards*replicas + len(seats) - 1) / len(seats)
	}
	return p
}

// ranked returns members in order of their weights for a shard, highest first.
func (p *plan) ranked(purpose string, shard int, members []int) []int {
	weights := p.weightsOf(purpose, shard)
	out := slices.Clone(members)
	slices.SortStableFunc(out, func(a, b int) int { return cmp.Compare(weights[b], weights[a]) })
	return out
}

// weightsOf returns the weights of the seats for a shard.
func (p *plan) weightsOf(purpose string, shard int) []uint64 {
	of := &p.weights[purpose][shard]
	if *of == nil {
		*of = make([]uint64, len(p.seats))
		for i, s := range p.seats {
			(*of)[i] = weight(purpose, shardBytes(id.Shard(shard+1)), []byte(s.Member))
		}
	}
	return *of
}

func (p *plan) everyone() []int {
	all := make([]int, len(p.seats))
	for i := range all {
		all[i] = i
	}
	return all
}

// choose adds the missing voters of a shard. It prefers new zones, then seats that are not
// full, then high weights.
func (p *plan) choose(shard int) {
	order := p.ranked(weightVoter, shard, p.everyone())
	for p.voting(shard) < p.replicas {
		best, bestCost := -1, [2]int{}
		for _, m := range order {
			cost := [2]int{p.inZone(shard, m), 0}
			if p.load[m] >= p.most {
				cost[1] = 1
			}
			if p.seats[m].free() && !slices.Contains(p.voters[shard], m) && (best < 0 || slices.Compare(cost[:], bestCost[:]) < 0) {
				best, bestCost = m, cost
			}
		}
		if best < 0 {
			return // the missed members must return first
		}
		p.voters[shard] = append(p.voters[shard], best)
		p.load[best]++
	}
}

// inZone counts the voters of a shard in the zone of m, except m.
func (p *plan) inZone(shard, m int) int {
	n := 0
	for _, v := range p.voters[shard] {
		if v != m && p.seats[v].Zone == p.seats[m].Zone {
			n++
		}
	}
	return n
}

// crowd counts the voters of a shard in the zone of to once from has lost its vote.
func (p *plan) crowd(shard, from, to int) int {
	n := p.inZone(shard, to)
	if p.seats[from].Zone == p.seats[to].Zone {
		n--
	}
	return n
}

// level moves one vote to a seat that has at least two fewer, unless that crowds a zone.
// It returns false if it finds no such vote.
func (p *plan) level() bool {
	byLoad := p.everyone()
	slices.SortStableFunc(byLoad, func(a, b int) int { return cmp.Compare(p.load[a], p.load[b]) })
	byLoad = slices.DeleteFunc(byLoad, func(m int) bool { return !p.seats[m].free() })
	for _, from := range slices.Backward(byLoad) {
		for _, to := range byLoad {
			if p.load[from] < p.load[to]+2 {
				break
			}
			if s := p.movable(from, to); s >= 0 {
				p.move(s, from, to)
				return true
			}
		}
	}
	return false
}

// move moves the vote of a shard from one seat to another.
func (p *plan) move(shard, from, to int) {
	p.voters[shard][slices.Index(p.voters[shard], from)] = to
	p.load[from]--
	p.load[to]++
}

// movable returns the best shard whose vote can move from one seat to the other, or −1.
func (p *plan) movable(from, to int) int {
	best, bestWeight := -1, uint64(0)
	for s, voters := range p.voters {
		if !slices.Contains(voters, from) || slices.Contains(voters, to) {
			continue
		}
		w := p.weightsOf(weightVoter, s)[to]
		if p.crowd(s, from, to) <= p.inZone(s, from) && (best < 0 || w > bestWeight) {
			best, bestWeight = s, w
		}
	}
	return best
}

// lead chooses a leader for each shard among its voters. It computes a matching (Kuhn
// 1955) in which no member leads more than quota shards. It raises quota only when no
// further shard can be matched.
func (p *plan) lead() []int {
	m := matching{leader: make([]int, len(p.voters)), led: make([][]int, len(p.seats))}
	for s, voters := range p.voters {
		m.leader[s] = -1
		m.wishes = append(m.wishes, p.ranked(weightLeader, s, voters))
	}
	for open := len(p.voters); open > 0; m.quota++ {
		for s, leader := range m.leader {
			if leader < 0 && m.match(s, make([]bool, len(p.seats))) {
				open--
			}
		}
	}
	return m.leader
}

type matching struct {
	quota  int
	wishes [][]int // by shard, the best first
	leader []int   // by shard, −1 for none
	led    [][]int // by seat
}

// match finds a leader for a shard, and may change the leaders of other shards for that.
// asked holds the seats that were tried.
func (m *matching) match(shard int, asked []bool) bool {
	for _, seat := range m.wishes[shard] {
		if asked[seat] {
			continue
		}
		asked[seat] = true
		if len(m.led[seat]) < m.quota {
			m.take(shard, seat)
			return true
		}
		for _, other := range m.led[seat] {
			if m.match(other, asked) {
				m.take(shard, seat)
				return true
			}
		}
	}
	return false
}

// take makes seat the leader of shard.
func (m *matching) take(shard, seat int) {
	if old := m.leader[shard]; old >= 0 {
		m.led[old] = slices.DeleteFunc(m.led[old], func(s int) bool { return s == shard })
	}
	m.leader[shard] = seat
	m.led[seat] = append(m.led[seat], shard)
}
