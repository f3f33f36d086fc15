package metafsm

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"facet/internal/id"
)

func testSeats(n int, zones ...string) []Seat {
	seats := make([]Seat, n)
	for i := range seats {
		seats[i].Member = id.NewMember(id.Node{UUID: id.UUID{byte(i + 1)}}, 1)
		if len(zones) > 0 {
			seats[i].Zone = zones[i%len(zones)]
		}
	}
	return seats
}

// counts returns how often each seat votes and leads.
func counts(seats []Seat, placed []ShardVoters) (votes, leads []int) {
	at := map[id.Member]int{}
	for i, s := range seats {
		at[s.Member] = i
	}
	votes, leads = make([]int, len(seats)), make([]int, len(seats))
	for _, p := range placed {
		leads[at[p.Voters[0]]]++
		for _, v := range p.Voters {
			votes[at[v]]++
		}
	}
	return votes, leads
}

func TestJumpMatchesPaper(t *testing.T) {
	t.Parallel()
	// The paper's algorithm, as printed.
	paper := func(key uint64, buckets int) int {
		b, j := int64(-1), int64(0)
		for j < int64(buckets) {
			b = j
			key = key*2862933555777941757 + 1
			j = int64(float64(b+1) * (float64(int64(1)<<31) / float64((key>>33)+1)))
		}
		return int(b)
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 20_000 {
		key, n := r.Uint64(), 1+r.IntN(4095)
		if got, want := Jump(key, n), paper(key, n); got != want {
			t.Fatalf("key %d of %d: got %d, want %d", key, n, got, want)
		}
	}
	for _, golden := range []struct {
		key  uint64
		n    int
		want int
	}{{1, 1, 0}, {42, 57, 43}, {0xDEAD10CC, 1, 0}, {0xDEAD10CC, 666, 361}, {256, 1024, 520}} {
		if got := Jump(golden.key, golden.n); got != golden.want {
			t.Errorf("key %d of %d: got %d, want %d", golden.key, golden.n, got, golden.want)
		}
	}
}

func TestJumpMovesToNewPlaceOnly(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(2, 1))
	const keys = 4000
	for n := 1; n < 20; n++ {
		moved := 0
		for range keys {
			key := r.Uint64()
			before, after := Jump(key, n), Jump(key, n+1)
			if before != after {
				moved++
				if after != n {
					t.Fatalf("key %d moves from %d to %d when %d becomes the newest", key, before, after, n)
				}
			}
		}
		if want := keys / (n + 1); moved < want*8/10 || moved > want*12/10 {
			t.Errorf("%d of %d keys move to place %d, want about %d", moved, keys, n, want)
		}
	}
}

func TestShardCountGrowsWithSize(t *testing.T) {
	t.Parallel()
	f := func(size uint32, shards, want int) {
		t.Helper()
		if got := (Cluster{Shards: shards}).ShardCount(size); got != want {
			t.Errorf("size %d of %d shards: got %d, want %d", size, shards, got, want)
		}
	}
	f(0, 16, 1)
	f(1, 16, 1)
	f(50_000, 16, 1)
	f(50_001, 16, 2)
	f(1_000_000, 16, 16)
	f(1<<32-1, 16, 16)
	f(1<<32-1, 1, 1)
}

func TestShardListGrowsAtEnd(t *testing.T) {
	t.Parallel()
	first := map[id.Shard]int{}
	for n := range 1600 {
		g := id.Gallery{UUID: id.UUID{byte(n >> 8), byte(n)}}
		all := ShardsOf(g, 16, 16)
		first[all[0]]++
		for count := range 17 {
			if got := ShardsOf(g, count, 16); !slices.Equal(got, all[:count]) {
				t.Fatalf("gallery %s: %d shards are %v, all are %v", g, count, got, all)
			}
		}
		sorted := slices.Sorted(slices.Values(all))
		if sorted[0] != 1 || sorted[15] != 16 || len(slices.Compact(sorted)) != 16 {
			t.Fatalf("gallery %s: %v", g, all)
		}
	}
	for s := id.Shard(1); s <= 16; s++ {
		if first[s] < 60 || first[s] > 140 {
			t.Errorf("shard %d is the first of %d galleries of 1600", s, first[s])
		}
	}
	if got := ShardsOf(id.Gallery{}, 20, 4); len(got) != 4 {
		t.Errorf("20 of 4 shards: %v", got)
	}
}

func TestPlacementsMatchTranscript(t *testing.T) {
	t.Parallel()
	want := []id.Shard{6, 5, 2, 14, 12, 9, 11, 15, 10, 8, 7, 16, 3, 4, 13, 1}
	if got := ShardsOf(id.Gallery{UUID: id.UUID{1, 2, 3}}, 16, 16); !slices.Equal(got, want) {
		t.Errorf("shards of a gallery: got %v, want %v", got, want)
	}
	seats := testSeats(5, "a", "b", "c")
	var got []string
	for _, p := range Place(seats, 16, 3) {
		line := fmt.Sprint(p.Shard, ":")
		for _, v := range p.Voters {
			line += fmt.Sprint(" ", slices.IndexFunc(seats, func(s Seat) bool { return s.Member == v }))
		}
		got = append(got, line)
	}
	if diff := cmp.Diff(goldenPlaces, got); diff != "" {
		t.Errorf("voters (-want +got):\n%s", diff)
	}
}

func TestVotesAndLeadersAreEven(t *testing.T) {
	t.Parallel()
	for _, shards := range []int{1, 4, 16, 31} {
		for n := 1; n <= 9; n++ {
			for replicas := 1; replicas <= 5; replicas++ {
				seats := testSeats(n)
				placed := Place(seats, shards, replicas)
				votes, leads := counts(seats, placed)
				if slices.Max(votes)-slices.Min(votes) > 1 || slices.Max(leads)-slices.Min(leads) > 1 {
					t.Errorf("%d shards, %d seats, %d replicas: votes %v, leaders %v", shards, n, replicas, votes, leads)
				}
				for i, p := range placed {
					distinct := slices.Compact(slices.Sorted(slices.Values(p.Voters)))
					if p.Shard != id.Shard(i+1) || len(p.Voters) != min(n, replicas) || len(distinct) != len(p.Voters) {
						t.Errorf("%d shards, %d seats, %d replicas: %+v", shards, n, replicas, p)
					}
				}
			}
		}
	}
}

func TestVotersSpreadOverZones(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 1))
	for range 300 {
		seats := testSeats(1 + r.IntN(8))
		zones := map[string]bool{}
		for i := range seats {
			seats[i].Zone = string(rune('a' + r.IntN(4)))
			zones[seats[i].Zone] = true
		}
		replicas := 1 + r.IntN(4)
		for _, p := range Place(seats, 16, replicas) {
			in := map[string]bool{}
			for _, v := range p.Voters {
				in[seats[slices.IndexFunc(seats, func(s Seat) bool { return s.Member == v })].Zone] = true
			}
			if want := min(len(zones), replicas, len(seats)); len(in) != want {
				t.Fatalf("seats %v, %d replicas, %+v: in %d zones, want %d", seats, replicas, p, len(in), want)
			}
		}
	}
}

func TestPlacementIgnoresSeatOrder(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(4, 1))
	seats := testSeats(7, "a", "b", "c")
	want := Place(seats, 16, 3)
	for range 20 {
		r.Shuffle(len(seats), func(i, j int) { seats[i], seats[j] = seats[j], seats[i] })
		if diff := cmp.Diff(want, Place(seats, 16, 3)); diff != "" {
			t.Fatalf("seats %v (-want +got):\n%s", seats, diff)
		}
	}
	if got := Place(nil, 16, 3); got != nil {
		t.Errorf("without seats: %v", got)
	}
}

func TestNewNodeMovesLittle(t *testing.T) {
	t.Parallel()
	for n := 3; n <= 8; n++ {
		before, after := Place(testSeats(n), 16, 3), Place(testSeats(n+1), 16, 3)
		moved := 0
		for i := range before {
			for _, v := range after[i].Voters {
				if !slices.Contains(before[i].Voters, v) {
					moved++
				}
			}
		}
		// The new node's fair share must move. An even load costs some further moves.
		if share := 48 / (n + 1); moved > 2*share+2 {
			t.Errorf("node %d: %d of 48 replicas move, its share is %d", n+1, moved, share)
		}
	}
}

// goldenPlaces are the voters of each shard by the numbers of their seats.
var goldenPlaces = []string{
	"1: 3 4 2", "2: 4 3 2", "3: 3 2 4", "4: 2 1 3", "5: 4 2 3", "6: 3 4 2", "7: 2 0 4", "8: 1 2 0",
	"9: 0 4 2", "10: 2 0 1", "11: 1 2 0", "12: 0 1 2", "13: 0 1 2", "14: 4 2 3", "15: 1 2 3", "16: 2 0 1",
}
